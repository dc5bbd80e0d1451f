../hif4-small.v
hif4_small_pkg.sv
hif4_small_structs.sv
hif4_small_axis_slice.sv
hif4_small_axis.sv
