"""What was there before a command changed it, and where that is kept while it runs."""
