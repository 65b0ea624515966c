"""Combinations of options against brute force: a few hundred draws, and that a check can fail."""

from dataclasses import replace

import numpy as np
import pytest

from studies import combinations
from studies.combinations import Draw, Judged, Verdict, judge

pytestmark = [
    pytest.mark.untraced,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::fairpca.FairnessWarning"),
]

N_BLOCKS, BLOCK = 8, 30
"""Draws that the study does not have."""


@pytest.mark.parametrize("block", range(N_BLOCKS))
def test_nothing_that_is_said_is_false(block):
    first = combinations.N_DRAWS + block * BLOCK
    verdicts = [judge(seed) for seed in range(first, first + BLOCK)]
    assert [(one.words, one.false) for one in verdicts if one.false] == []
    assert [one.words for one in verdicts if one.refusal] == []
    checks = sum((one.checks for one in verdicts), verdicts[0].checks)
    assert checks["measures"] >= BLOCK
    assert checks["bound"] >= BLOCK


def judged_with(fair, draw, **changes):
    """What is found false where a certificate has other numbers."""
    verdict = Verdict("")
    fair.certificate_ = replace(fair.certificate_, **changes)
    Judged(draw, fair, verdict).run()
    return {about.split(":")[0] for about in verdict.false}


def test_checks_can_fail():
    found = set()
    for seed in range(25):
        draw = Draw.of(seed)
        certificate = draw.fitted().certificate_
        changes = [
            {"lower_bound": certificate.lower_bound + 0.1 * abs(certificate.value)},
            {"value": 1.1 * certificate.value},
            {"change_from_pca": -certificate.change_from_pca},
            {"measures": certificate.measures + 0.1 * np.abs(certificate.measures).max()},
        ]
        if certificate.status == "infeasible":
            changes.append({"status": "optimal"})
            changes.append({"violation_bound": 2.0 * certificate.violation_bound})
        if certificate.status == "optimal":
            changes.append({"measure": "share kept"})
        for change in changes:
            found |= judged_with(draw.fitted(), draw, **change)
    assert {"bound", "value", "measures", "change from PCA", "status", "gap"} <= found
    assert "sentence" in found
