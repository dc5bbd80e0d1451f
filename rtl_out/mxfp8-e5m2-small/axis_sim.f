../mxfp8-e5m2-small.v
mxfp8_e5m2_small_pkg.sv
mxfp8_e5m2_small_structs.sv
mxfp8_e5m2_small_axis_slice.sv
mxfp8_e5m2_small_axis.sv
mxfp8_e5m2_small_axis_tb.sv
