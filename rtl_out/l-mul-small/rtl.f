../l-mul-small.v
