../int8-small.v
int8_small_tb.sv
