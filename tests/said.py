"""What the program says on the terminal."""

from fairpca.text import laid_out

_CAUTION = "fairpca: warning: Too few rows to be judged: "


def without_cautions(text):
    """The same without the lines of cautions, which small tables give."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(_CAUTION))


def piped(result):
    """A result as the program prints it where there is no terminal: sentences are not wrapped."""
    parts = result.text_parts()
    return "\n".join(part if isinstance(part, str) else laid_out([part]) for part in parts)
