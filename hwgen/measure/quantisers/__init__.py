"""What hardware quantisers cost."""
