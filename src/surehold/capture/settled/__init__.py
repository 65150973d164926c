"""What a command changed: what was kept, compared with what is there when it has ended."""
