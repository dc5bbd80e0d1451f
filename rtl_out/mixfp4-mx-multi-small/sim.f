../mixfp4-mx-multi-small.v
mixfp4_mx_multi_small_tb.sv
