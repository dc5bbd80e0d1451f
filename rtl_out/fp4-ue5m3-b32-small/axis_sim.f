../fp4-ue5m3-b32-small.v
fp4_ue5m3_b32_small_pkg.sv
fp4_ue5m3_b32_small_structs.sv
fp4_ue5m3_b32_small_axis_slice.sv
fp4_ue5m3_b32_small_axis.sv
fp4_ue5m3_b32_small_axis_tb.sv
