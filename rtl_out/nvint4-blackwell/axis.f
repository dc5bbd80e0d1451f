../nvint4-blackwell.v
nvint4_blackwell_pkg.sv
nvint4_blackwell_structs.sv
nvint4_blackwell_axis_slice.sv
nvint4_blackwell_axis.sv
