"""NotCertified: said in place of a certificate where nothing is proven."""

from dataclasses import dataclass

from fairpca.certificate.spoken import Spoken


@dataclass(frozen=True, repr=False)
class NotCertified(Spoken):
    """Nothing is proven about a subspace. Print it to read why.

    Attributes
    ----------
    reason : str
        Why there is no proof.
    direction : str
        What is known of the distance from a Pareto stationary point; empty if nothing is.
    status : str
        "not certified".

    See Also
    --------
    fairpca.Certificate : What the other solvers say.

    Examples
    --------
    >>> from fairpca.certificate import NotCertified
    >>> NotCertified("it was not asked for")
    Not certified: it was not asked for. Nothing is proven about how good this subspace is.
    """

    reason: str
    direction: str = ""
    status: str = "not certified"

    def sentences(self) -> list[str]:
        """The same in plain words."""
        said = [
            f"Not certified: {self.reason}.",
            "Nothing is proven about how good this subspace is.",
        ]
        return said + [self.direction] * bool(self.direction)
