"""How good a subspace is, what proves it, and both in words."""

from fairpca.certificate.judging import EQUAL, OPTIMAL_GAP, certify, warn_of_certificate
from fairpca.certificate.not_certified import NotCertified
from fairpca.certificate.record import Certificate
from fairpca.certificate.words import rounded

__all__ = [
    "EQUAL",
    "OPTIMAL_GAP",
    "Certificate",
    "NotCertified",
    "certify",
    "rounded",
    "warn_of_certificate",
]
