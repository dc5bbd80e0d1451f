../nvfp4-multi-small.v
nvfp4_multi_small_tb.sv
