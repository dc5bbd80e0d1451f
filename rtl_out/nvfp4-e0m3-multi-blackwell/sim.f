../nvfp4-e0m3-multi-blackwell.v
nvfp4_e0m3_multi_blackwell_tb.sv
