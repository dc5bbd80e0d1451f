../nvint4-small.v
nvint4_small_pkg.sv
nvint4_small_structs.sv
nvint4_small_axis_slice.sv
nvint4_small_axis.sv
