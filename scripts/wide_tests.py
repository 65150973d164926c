"""Where `make mutate` looks for a test that notices a mutant, when none whose lines are known does."""

WIDE = {
    "workspace": ("workspace/test_durable.py", "dialects/claude", "dialects/files", "concurrency", "crash"),
    "workspace/access": (
        "dialects/claude",
        "dialects/anchored",
        "front/mcp/test_questions.py",
        "front/acp/test_asking.py",
    ),
    "workspace/foreign": ("front/hosts", "capture", "concurrency"),
    "workspace/past": ("front/review/test_history_pages.py", "front/review/test_truth.py", "capture", "front/mcp"),
    "workspace/runs": ("capture", "front/hosts", "front/review/test_truth.py", "crash"),
    "workspace/undo": ("workspace/test_durable.py", "capture", "front/review", "front/mcp/test_operations.py", "crash"),
    "disk": ("workspace/test_durable.py", "workspace/test_editor.py", "concurrency", "crash"),
    "disk/editor": ("front/acp",),
    "stores": (
        "workspace/test_durable.py",
        "stores/test_many_writers.py",
        "front/review/test_beside.py",
        "concurrency",
    ),
    "stores/blobs": ("workspace/test_durable.py", "front/mcp/test_replicas.py", "crash"),
    "stores/postgres": ("stores/test_many_writers.py", "front/mcp/test_replicas.py", "concurrency"),
    "stores/sqlite": ("workspace/test_durable.py", "stores/test_many_writers.py", "concurrency", "crash"),
    "text": ("dialects",),
    "text/anchored": ("dialects/anchored",),
    "text/notebook": ("dialects/claude/test_notebook_edit.py", "dialects/claude/test_read_media.py", "media"),
    "text/patch": ("dialects/files",),
    "text/quoted": ("dialects/claude", "dialects/multi_edit", "dialects/files"),
}
"""The tests that start processes, whose lines are not known: what a mutant meets then, by its innermost folder here."""
