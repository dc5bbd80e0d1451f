"""The table of formats."""
