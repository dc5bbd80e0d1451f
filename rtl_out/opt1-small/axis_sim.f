../opt1-small.v
opt1_small_pkg.sv
opt1_small_structs.sv
opt1_small_axis_slice.sv
opt1_small_axis.sv
opt1_small_axis_tb.sv
