"""The parts of the exact solver: dual, local search, and the space they work in."""
