../int4-fp16-small.v
int4_fp16_small_pkg.sv
int4_fp16_small_structs.sv
int4_fp16_small_axis_slice.sv
int4_fp16_small_axis.sv
