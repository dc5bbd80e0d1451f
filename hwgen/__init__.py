"""RTL generator and hardware cost model for NVFP4 and MixFP4 tensor cores."""

__version__ = "0.1.0"
