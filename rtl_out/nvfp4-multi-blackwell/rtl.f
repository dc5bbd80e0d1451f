../nvfp4-multi-blackwell.v
