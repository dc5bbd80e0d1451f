../mxfp8-e5m2-small.v
mxfp8_e5m2_small_tb.sv
