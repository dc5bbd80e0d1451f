../mixfp4-blackwell.v
mixfp4_blackwell_tb.sv
