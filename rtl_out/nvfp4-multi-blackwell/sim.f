../nvfp4-multi-blackwell.v
nvfp4_multi_blackwell_tb.sv
