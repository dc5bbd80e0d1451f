../if4-small.v
if4_small_tb.sv
