../mixfp4-multi-small.v
mixfp4_multi_small_tb.sv
