../hif4-small.v
hif4_small_tb.sv
