../mxfp4-2x16-small.v
mxfp4_2x16_small_tb.sv
