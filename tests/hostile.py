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
