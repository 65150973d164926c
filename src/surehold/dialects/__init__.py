"""Tool families: each translates its words for the workspace, and decides nothing."""
