../ternary-small.v
ternary_small_tb.sv
