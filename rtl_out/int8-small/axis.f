../int8-small.v
int8_small_pkg.sv
int8_small_structs.sv
int8_small_axis_slice.sv
int8_small_axis.sv
