../mxfp6-e3m2-small.v
mxfp6_e3m2_small_pkg.sv
mxfp6_e3m2_small_structs.sv
mxfp6_e3m2_small_axis_slice.sv
mxfp6_e3m2_small_axis.sv
mxfp6_e3m2_small_axis_tb.sv
