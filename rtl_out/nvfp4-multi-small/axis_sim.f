../nvfp4-multi-small.v
nvfp4_multi_small_pkg.sv
nvfp4_multi_small_structs.sv
nvfp4_multi_small_axis_slice.sv
nvfp4_multi_small_axis.sv
nvfp4_multi_small_axis_tb.sv
