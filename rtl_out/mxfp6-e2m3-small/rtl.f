../mxfp6-e2m3-small.v
