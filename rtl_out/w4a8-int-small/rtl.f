../w4a8-int-small.v
