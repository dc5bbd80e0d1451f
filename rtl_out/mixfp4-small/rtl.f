../mixfp4-small.v
