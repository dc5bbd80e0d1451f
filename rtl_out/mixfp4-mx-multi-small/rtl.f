../mixfp4-mx-multi-small.v
