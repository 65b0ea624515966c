"""Names and labels that would do harm where they are not taken for mere text."""

HOSTILE = (
    "<script>alert('x')</script>",
    "a\"b'c,d;e",
    "first\nsecond\r\n\tthird",
    "\u202eevil\u2066 שלום",
    "👩‍👩‍👧 ✓",
    "=1+1",
    "x" * 10_000,
    "\x1b[2J",
)

NAMES = (
    "عربي فصحى",
    "עברית",
    "فارسی\u200cزبان",  # noqa: RUF001
    "👩 woman",
    "日本語の名前",
    "한국어",
    "नमस्ते",
    "e\u0301te\u0301",
    "plain",
)
"""Names as people have them all over the world, which are printed as they are."""
