../l-mul-small.v
l_mul_small_pkg.sv
l_mul_small_structs.sv
l_mul_small_axis_slice.sv
l_mul_small_axis.sv
l_mul_small_axis_tb.sv
