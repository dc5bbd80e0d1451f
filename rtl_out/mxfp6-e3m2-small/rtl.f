../mxfp6-e3m2-small.v
