../nvfp4-mx-multi-small.v
nvfp4_mx_multi_small_pkg.sv
nvfp4_mx_multi_small_structs.sv
nvfp4_mx_multi_small_axis_slice.sv
nvfp4_mx_multi_small_axis.sv
