../mxfp6-e3m2-small.v
mxfp6_e3m2_small_tb.sv
