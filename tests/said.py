"""What the program says on the terminal."""

from fairpca.cli import main
from fairpca.text import laid_out

from texts import recorded

_CAUTION = "fairpca: warning: Too few rows to be judged: "


def without_cautions(text):
    """The same without the lines of cautions, which small tables give."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(_CAUTION))


_OF_TYPER = ("Input should be", "is not a valid", "is not in the range")
"""What typer says of a value, each release in its own words."""


def complaint(capsys, arguments, *words, code=2):
    """The one line, with all these words, with which the program refuses to do what is asked."""
    assert main([*arguments]) == code
    shown = capsys.readouterr()
    assert shown.out == ""
    line = without_cautions(shown.err)
    assert line.startswith("fairpca: ")
    _, *more = line.splitlines()  # of a table that is refused, one line for each thing
    assert not any(each.startswith("fairpca: ") for each in more)
    assert "\n" not in line.rstrip("\n") or more[-1].partition(": ")[0] in ("add", "then add")
    text = line.removeprefix("fairpca: ").rstrip("\n")
    if any(part in text for part in _OF_TYPER):
        assert all(word in text for word in words)
        return text
    return recorded(text, *words)


def piped(result):
    """A result as the program prints it where there is no terminal: sentences are not wrapped."""
    parts = result.text_parts()
    return "\n".join(part if isinstance(part, str) else laid_out([part]) for part in parts)
