"""What is made of fits: audits, fronts, metrics and held-out losses."""
