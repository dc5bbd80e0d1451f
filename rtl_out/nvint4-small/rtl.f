../nvint4-small.v
