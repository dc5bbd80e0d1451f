"""GEMM lists of published models, as data; read by `hwgen.cost.workloads`."""
