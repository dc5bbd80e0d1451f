../opt1-small.v
opt1_small_tb.sv
