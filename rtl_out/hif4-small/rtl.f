../hif4-small.v
