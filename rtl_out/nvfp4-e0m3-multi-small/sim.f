../nvfp4-e0m3-multi-small.v
nvfp4_e0m3_multi_small_tb.sv
