../mxfp4-small.v
mxfp4_small_pkg.sv
mxfp4_small_structs.sv
mxfp4_small_axis_slice.sv
mxfp4_small_axis.sv
mxfp4_small_axis_tb.sv
