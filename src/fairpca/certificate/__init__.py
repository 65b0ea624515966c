"""How good a subspace is, what proves it, and both in words."""

from fairpca.certificate.judging import EQUAL, OPTIMAL_GAP, certify
from fairpca.certificate.record import Certificate
from fairpca.certificate.words import rounded

__all__ = ["EQUAL", "OPTIMAL_GAP", "Certificate", "certify", "rounded"]
