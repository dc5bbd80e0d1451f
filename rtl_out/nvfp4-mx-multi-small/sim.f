../nvfp4-mx-multi-small.v
nvfp4_mx_multi_small_tb.sv
