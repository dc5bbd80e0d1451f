../int4-fp16-small.v
