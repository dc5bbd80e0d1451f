../nvfp4-small.v
nvfp4_small_pkg.sv
nvfp4_small_structs.sv
nvfp4_small_axis_slice.sv
nvfp4_small_axis.sv
