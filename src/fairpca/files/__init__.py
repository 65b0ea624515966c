"""Files that hold no code: archives with a checksum, atomic writes, and files of moments."""
