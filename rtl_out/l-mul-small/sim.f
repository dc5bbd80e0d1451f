../l-mul-small.v
l_mul_small_tb.sv
