../opt1-small.v
