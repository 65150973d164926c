"""ripgrep as a search engine: its flags, its output, its errors, and how it is run. Nothing else starts ripgrep, and nothing here reads file content."""
