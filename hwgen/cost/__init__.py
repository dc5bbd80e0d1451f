"""What a GEMM costs: cycles, time and energy."""
