../fp4-ue5m3-b16-small.v
