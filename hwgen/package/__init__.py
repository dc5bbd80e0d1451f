"""What a downstream flow wants beside the Verilog: testbench, file lists, lint waivers, constraints, flow files."""
