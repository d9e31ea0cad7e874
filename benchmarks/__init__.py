"""Side-by-side measurements: ratios of times taken in one run, and held-out gaps on real data."""
