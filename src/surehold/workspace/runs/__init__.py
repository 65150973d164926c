"""What commands did: recording it, and switching entries of any kind to take it back or to make it again."""
