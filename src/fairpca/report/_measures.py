"""What fairness is judged by, in the words and units of a report."""

from dataclasses import dataclass

from fairpca._linalg.types import Array
from fairpca.certificate import rounded
from fairpca.inspection.front import ParetoFront, shown_measures
from fairpca.measures import Measure
from fairpca.report._text import number, percent

_FIGURES = 4

_AXES = {
    "disparity": "loss beyond what the group must lose",
    "relative_disparity": "loss beyond what the group must lose, % of its variance",
    "loss": "loss",
    "share_lost": "% of the group's variance that is lost",
    "kept_variance": "variance that is kept",
    "share_kept": "% of the group's variance that is kept",
}

_MEANINGS = {
    "own": "What a group loses beyond what it would lose on its own, because the reduction "
    "serves others too",
    "all": "The loss of a group",
    "none": "What the reduction keeps of a group: its variance minus its loss",
}


@dataclass(frozen=True)
class MeasureWords:
    """The measure of a front, in words and units.

    What is kept is shown without the minus sign that it has as a measure; shares are shown as per
    cent of a group's variance.
    """

    front: ParetoFront

    @property
    def measure(self) -> Measure:
        """The measure itself."""
        return self.front.problem.goal.measured

    @property
    def noun(self) -> str:
        """What a group has of it: "disparity", "share kept" and so on."""
        return self.front[0].certificate.measure

    @property
    def worst(self) -> str:
        """What the worst-off group has: "largest disparity", "least share kept" and so on."""
        return self.front.worst_name

    @property
    def is_kept(self) -> bool:
        """Whether more is better."""
        return self.measure.is_kept

    @property
    def is_relative(self) -> bool:
        """Whether it is a share of the group's variance."""
        return self.measure.relative

    @property
    def axis(self) -> str:
        """What stands under an axis of it."""
        return _AXES[self.measure.name]

    @property
    def meaning(self) -> str:
        """What it is, in a sentence without its full stop."""
        share = ", as a share of its variance" if self.is_relative else ""
        return f"{_MEANINGS[self.measure.baseline]}{share}"

    @property
    def verb(self) -> str:
        """What a group does."""
        return "keeps" if self.is_kept else "loses"

    @property
    def of(self) -> str:
        """What follows an amount of it."""
        return " of its variance" if self.is_relative else ""

    @property
    def beyond(self) -> str:
        """What makes a disparity of a loss."""
        return " beyond what it must" if self.measure.baseline == "own" else ""

    def shown(self, measures: Array) -> Array:
        """Measures of the groups as they are shown."""
        return shown_measures(self.front.problem, measures)

    def level(self, unfairness: float) -> float:
        """Unfairness, which what is kept has with a minus sign, as it is shown."""
        return -unfairness if self.is_kept and self.front.over == "largest" else unfairness

    def amount(self, value: float, *, up: bool | None = None) -> str:
        """An amount of it, rounded to one side where `up` says so."""
        size = abs(value)
        if size <= self.front.problem.negligible_spread:
            return "0 %" if self.is_relative else "0"
        if self.is_relative:
            return percent(size, up=up)
        return number(size if up is None else float(rounded(size, _FIGURES, up=up)))
