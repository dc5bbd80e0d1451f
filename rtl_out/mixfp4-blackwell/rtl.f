../mixfp4-blackwell.v
