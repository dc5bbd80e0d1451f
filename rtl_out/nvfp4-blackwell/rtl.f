../nvfp4-blackwell.v
