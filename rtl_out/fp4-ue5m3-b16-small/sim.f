../fp4-ue5m3-b16-small.v
fp4_ue5m3_b16_small_tb.sv
