../mixfp4-blackwell.v
mixfp4_blackwell_pkg.sv
mixfp4_blackwell_structs.sv
mixfp4_blackwell_axis_slice.sv
mixfp4_blackwell_axis.sv
