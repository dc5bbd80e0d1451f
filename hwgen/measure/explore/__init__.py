"""The best of many ways to build two designs."""
