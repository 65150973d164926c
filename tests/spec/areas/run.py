"""What commands do."""

from spec.model import section

RUN = (
    *section(
        "What commands do",
        "run contract",
        {
            "run:undo:exact": "`undo` of a run brings back bytes, links, directories, modes, owners, times, attributes, holes and hard links.",
            "run:redo:exact": "`redo` of a run gives what the command had left, times included.",
            "run:report:complete": "`complete: true` is never wrong: whatever could not be kept is named.",
        },
    ),
)
