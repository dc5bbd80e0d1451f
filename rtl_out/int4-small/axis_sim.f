../int4-small.v
int4_small_pkg.sv
int4_small_structs.sv
int4_small_axis_slice.sv
int4_small_axis.sv
int4_small_axis_tb.sv
