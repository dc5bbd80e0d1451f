../ternary-small.v
ternary_small_pkg.sv
ternary_small_structs.sv
ternary_small_axis_slice.sv
ternary_small_axis.sv
