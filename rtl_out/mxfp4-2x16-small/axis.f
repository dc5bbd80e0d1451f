../mxfp4-2x16-small.v
mxfp4_2x16_small_pkg.sv
mxfp4_2x16_small_structs.sv
mxfp4_2x16_small_axis_slice.sv
mxfp4_2x16_small_axis.sv
