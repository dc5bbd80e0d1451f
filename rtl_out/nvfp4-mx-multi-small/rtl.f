../nvfp4-mx-multi-small.v
