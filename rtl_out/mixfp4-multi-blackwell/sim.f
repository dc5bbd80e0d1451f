../mixfp4-multi-blackwell.v
mixfp4_multi_blackwell_tb.sv
