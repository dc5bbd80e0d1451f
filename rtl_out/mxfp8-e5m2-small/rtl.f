../mxfp8-e5m2-small.v
