"""Studies: they synthesise, simulate and compare, and give records. They print nothing."""
