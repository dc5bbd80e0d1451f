../blockdialect-small.v
