../mxint8-small.v
mxint8_small_pkg.sv
mxint8_small_structs.sv
mxint8_small_axis_slice.sv
mxint8_small_axis.sv
mxint8_small_axis_tb.sv
