../msfp12-small.v
msfp12_small_pkg.sv
msfp12_small_structs.sv
msfp12_small_axis_slice.sv
msfp12_small_axis.sv
