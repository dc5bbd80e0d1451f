"""Scaled block sums become terms, and terms become results."""
