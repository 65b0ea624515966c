"""Studies: scripts that write a page of figures, each beside its page.

``python -m studies.exact_cases`` runs one of them, ``make studies`` all that need nothing else, and
``make studies-large`` those that need more data. The experiments of the paper are a package of
their own, `reproduction` (``make reproduce``). `real_data`, `file_mutations` and `subspace_attack`
are what several studies and tests share.
"""
