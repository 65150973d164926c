"""Commands on the history: what happened, who wrote a line, what a file was; undo, redo, export and commit."""
