"""Arithmetic circuits that know no format."""
