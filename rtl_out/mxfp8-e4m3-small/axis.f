../mxfp8-e4m3-small.v
mxfp8_e4m3_small_pkg.sv
mxfp8_e4m3_small_structs.sv
mxfp8_e4m3_small_axis_slice.sv
mxfp8_e4m3_small_axis.sv
