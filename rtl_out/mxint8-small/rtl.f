../mxint8-small.v
