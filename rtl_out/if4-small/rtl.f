../if4-small.v
