"""Read, Write, Edit, Glob, Grep, NotebookEdit: the tools that models already know."""
