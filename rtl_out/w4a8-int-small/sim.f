../w4a8-int-small.v
w4a8_int_small_tb.sv
