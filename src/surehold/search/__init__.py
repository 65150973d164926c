"""Finding files and places in them. A disk gives the files; whether somebody may see them is asked for each."""
