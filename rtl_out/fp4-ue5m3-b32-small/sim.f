../fp4-ue5m3-b32-small.v
fp4_ue5m3_b32_small_tb.sv
