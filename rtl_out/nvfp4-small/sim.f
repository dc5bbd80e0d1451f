../nvfp4-small.v
nvfp4_small_tb.sv
