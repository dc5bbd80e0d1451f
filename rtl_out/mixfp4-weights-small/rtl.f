../mixfp4-weights-small.v
