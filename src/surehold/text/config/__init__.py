"""Settings files of other programs: one value is set or taken out, and every other byte of the file stays."""
