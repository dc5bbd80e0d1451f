../mixfp4-small.v
mixfp4_small_tb.sv
