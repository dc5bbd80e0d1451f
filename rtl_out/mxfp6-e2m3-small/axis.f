../mxfp6-e2m3-small.v
mxfp6_e2m3_small_pkg.sv
mxfp6_e2m3_small_structs.sv
mxfp6_e2m3_small_axis_slice.sv
mxfp6_e2m3_small_axis.sv
