"""Numbers in words: the page's script has the same rules."""

from fairpca.certificate import rounded


def number(value: float | None, rounding: float = 0.0) -> str:
    """Four figures; a dash for what is not known, zero for what rounding alone can be."""
    if value is None:
        return "–"  # noqa: RUF001
    size = abs(value)
    if size <= rounding:
        return "0"
    if 1e-5 <= size < 1e9:
        return f"{float(f'{value:.4g}'):,.10f}".rstrip("0").rstrip(".")
    mantissa, exponent = f"{value:.3e}".split("e")
    return f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"


def percent(share: float, *, up: bool | None = None) -> str:
    """A share as per cent, with two or three figures; rounded to one side where `up` says so."""
    value = max(100.0 * share, 0.0)
    if 0.0 < value < 0.001 and up is not False:
        return "less than 0.001 %"
    figures = 2 if value < 1.0 else 3
    text = rounded(value, figures, up=up) if up is not None else f"{value:.{figures}g}"
    return f"{float(text):,.10f}".rstrip("0").rstrip(".") + " %"


def times(ratio: float) -> str:
    """A ratio above one."""
    return f"{ratio:,.0f}" if ratio >= 10.0 else f"{ratio:.2g}"


def rows(count: int) -> str:
    """So many rows."""
    return f"{count:,} row{'' if count == 1 else 's'}"
