"""What several families have in common: spelling, and the tools that more than one of them lists."""
