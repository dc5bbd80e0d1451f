../mxfp4-small.v
mxfp4_small_tb.sv
