../mxint8-small.v
mxint8_small_tb.sv
