../nvfp4-small.v
