../w4a8-small.v
w4a8_small_pkg.sv
w4a8_small_structs.sv
w4a8_small_axis_slice.sv
w4a8_small_axis.sv
w4a8_small_axis_tb.sv
