../int8-exact-small.v
int8_exact_small_tb.sv
