../int4-small.v
int4_small_tb.sv
