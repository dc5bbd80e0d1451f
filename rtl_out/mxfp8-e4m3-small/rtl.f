../mxfp8-e4m3-small.v
