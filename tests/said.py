"""What the program says on the terminal."""

_CAUTION = "fairpca: warning: Read with care: "


def without_cautions(text):
    """The same without the lines of cautions, which small tables give."""
    lines = text.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(_CAUTION))
