"""Spark's Python daemon, which has imported what its workers need before it divides into them.

Every worker would do so by itself otherwise, for seconds, and again after each one that fails.
"""

import pyspark.daemon

import fairpca.sources  # noqa: F401

if __name__ == "__main__":
    pyspark.daemon.manager()
