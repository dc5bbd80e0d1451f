../nvfp4-blackwell.v
nvfp4_blackwell_tb.sv
