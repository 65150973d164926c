"""The anchored family: read with hashes, edit by them."""
