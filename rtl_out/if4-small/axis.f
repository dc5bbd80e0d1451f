../if4-small.v
if4_small_pkg.sv
if4_small_structs.sv
if4_small_axis_slice.sv
if4_small_axis.sv
