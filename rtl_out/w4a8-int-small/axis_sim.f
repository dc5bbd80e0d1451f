../w4a8-int-small.v
w4a8_int_small_pkg.sv
w4a8_int_small_structs.sv
w4a8_int_small_axis_slice.sv
w4a8_int_small_axis.sv
w4a8_int_small_axis_tb.sv
