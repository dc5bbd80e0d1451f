../msfp12-small.v
