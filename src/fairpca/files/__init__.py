"""Files that hold no code: an archive, files of moments and of models."""
