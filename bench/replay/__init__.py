"""Real changes, made again through the tools and compared byte by byte with what really came out."""
