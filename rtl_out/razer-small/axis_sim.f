../razer-small.v
razer_small_pkg.sv
razer_small_structs.sv
razer_small_axis_slice.sv
razer_small_axis.sv
razer_small_axis_tb.sv
