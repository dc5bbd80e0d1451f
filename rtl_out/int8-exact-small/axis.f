../int8-exact-small.v
int8_exact_small_pkg.sv
int8_exact_small_structs.sv
int8_exact_small_axis_slice.sv
int8_exact_small_axis.sv
