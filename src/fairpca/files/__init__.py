"""Files that hold no code: an archive with checksums, atomic writes, and files of moments."""
