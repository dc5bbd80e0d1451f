../nvint4-small.v
nvint4_small_tb.sv
