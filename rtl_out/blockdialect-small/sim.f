../blockdialect-small.v
blockdialect_small_tb.sv
