"""Evaluation of fits: audits, fronts, metrics and held-out losses."""
