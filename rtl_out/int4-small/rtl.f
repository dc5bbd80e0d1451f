../int4-small.v
