"""Measurements: ratios taken in one run, never bare numbers. Nothing in the product imports this package."""
