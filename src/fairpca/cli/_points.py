"""Choosing a point of a front."""

from dataclasses import dataclass

from fairpca import ParetoFront
from fairpca._rows.checks import check_number
from fairpca.cli._terminal import BadInputError, refusing


@dataclass(frozen=True)
class PointChoice:
    """What a user wishes of a point; the parameters of `ParetoFront.select`."""

    index: int | None
    max_spread: float | None
    max_extra_loss: float | None
    knee: bool

    def check(self, n_points: int) -> None:
        """Refuse two wishes at once, and those that no front of so many points can meet."""
        if self._count() > 1:
            raise BadInputError(
                "choose a point by one of --index, --max-spread, --max-extra-loss and --knee, not "
                "by several."
            )
        for name, value in (("spread", self.max_spread), ("extra-loss", self.max_extra_loss)):
            if value is not None:
                with refusing():
                    check_number(f"--max-{name}", value, least=0.0)
        if self.index is not None and not -n_points <= self.index < n_points:
            raise BadInputError(
                f"--index must be between {-n_points} and {n_points - 1} for {n_points} points, "
                f"got {self.index}."
            )

    def among(self, front: ParetoFront, needed: bool) -> int | None:
        """The number of the point; without a wish the fairest if one is needed, else None."""
        if self._count() == 0:
            return len(front) - 1 if needed else None
        try:
            with refusing():
                return front.select(**vars(self))
        except IndexError as error:
            raise BadInputError(
                f"there is no point {self.index}: ordinary PCA is as fair as can be here, and the "
                "front has that one point, 0."
            ) from error

    def _count(self) -> int:
        wishes = (self.index, self.max_spread, self.max_extra_loss, self.knee or None)
        return sum(wish is not None for wish in wishes)
