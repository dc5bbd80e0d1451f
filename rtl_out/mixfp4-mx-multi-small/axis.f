../mixfp4-mx-multi-small.v
mixfp4_mx_multi_small_pkg.sv
mixfp4_mx_multi_small_structs.sv
mixfp4_mx_multi_small_axis_slice.sv
mixfp4_mx_multi_small_axis.sv
