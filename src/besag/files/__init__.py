"""Files in and out: bytes, lines, rows of any format, columns by name, whole files, going on where a run stopped."""
