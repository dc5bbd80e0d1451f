../ternary-small.v
