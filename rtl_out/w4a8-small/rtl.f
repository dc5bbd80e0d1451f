../w4a8-small.v
