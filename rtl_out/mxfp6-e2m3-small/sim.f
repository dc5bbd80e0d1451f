../mxfp6-e2m3-small.v
mxfp6_e2m3_small_tb.sv
