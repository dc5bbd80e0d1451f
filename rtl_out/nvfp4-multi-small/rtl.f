../nvfp4-multi-small.v
