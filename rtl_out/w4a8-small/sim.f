../w4a8-small.v
w4a8_small_tb.sv
