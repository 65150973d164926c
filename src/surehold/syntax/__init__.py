"""How files of many languages are read, to see whether an edit broke them."""
