../msfp12-small.v
msfp12_small_tb.sv
