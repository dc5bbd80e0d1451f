"""Reports as plots, one module a kind."""
