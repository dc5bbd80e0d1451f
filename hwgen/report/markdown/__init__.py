"""Reports as Markdown and CSV, one module a kind."""
