../nvint4-blackwell.v
nvint4_blackwell_tb.sv
