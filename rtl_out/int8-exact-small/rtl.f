../int8-exact-small.v
