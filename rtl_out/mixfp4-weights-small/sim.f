../mixfp4-weights-small.v
mixfp4_weights_small_tb.sv
