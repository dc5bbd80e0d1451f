../nvint4-blackwell.v
