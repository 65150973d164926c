"""Answers questions about the history: which changes are meant, who wrote a line, what a file was, what a period did."""
