../int8-small.v
