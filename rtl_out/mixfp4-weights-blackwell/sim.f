../mixfp4-weights-blackwell.v
mixfp4_weights_blackwell_tb.sv
