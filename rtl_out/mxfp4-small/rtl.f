../mxfp4-small.v
