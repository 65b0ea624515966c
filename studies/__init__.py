"""Studies: scripts that write a page of figures, each beside its page.

``python -m studies.exact_cases`` runs one of them, ``make studies`` all but the longest. The
experiments of the paper are a package of their own, `reproduction` (``make reproduce``).
`file_mutations` and `subspace_attack` are what several studies and tests share.
"""
