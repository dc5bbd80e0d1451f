../nvfp4-e0m3-multi-blackwell.v
