../nvfp4-blackwell.v
nvfp4_blackwell_pkg.sv
nvfp4_blackwell_structs.sv
nvfp4_blackwell_axis_slice.sv
nvfp4_blackwell_axis.sv
