../fp4-ue5m3-b16-small.v
fp4_ue5m3_b16_small_pkg.sv
fp4_ue5m3_b16_small_structs.sv
fp4_ue5m3_b16_small_axis_slice.sv
fp4_ue5m3_b16_small_axis.sv
