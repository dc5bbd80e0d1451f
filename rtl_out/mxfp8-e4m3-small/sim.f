../mxfp8-e4m3-small.v
mxfp8_e4m3_small_tb.sv
