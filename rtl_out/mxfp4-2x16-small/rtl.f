../mxfp4-2x16-small.v
