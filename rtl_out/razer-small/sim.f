../razer-small.v
razer_small_tb.sv
