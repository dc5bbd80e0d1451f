../mixfp4-small.v
mixfp4_small_pkg.sv
mixfp4_small_structs.sv
mixfp4_small_axis_slice.sv
mixfp4_small_axis.sv
