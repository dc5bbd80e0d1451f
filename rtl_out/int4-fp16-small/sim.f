../int4-fp16-small.v
int4_fp16_small_tb.sv
