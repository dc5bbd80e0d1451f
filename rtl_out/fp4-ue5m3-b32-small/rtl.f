../fp4-ue5m3-b32-small.v
