../mixfp4-multi-blackwell.v
