"""Mapped netlists: reading, linking, buffering and writing them."""
