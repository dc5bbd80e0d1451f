../mixfp4-weights-blackwell.v
