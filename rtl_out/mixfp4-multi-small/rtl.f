../mixfp4-multi-small.v
