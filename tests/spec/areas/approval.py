"""Approval: what a person allows is what happened, and is written down."""

from spec.model import section

APPROVAL = (
    *section(
        "Approval",
        "approval contract",
        {
            "approval:ledger:rule": "The ledger says of every change whether a person was asked, by which rule, where, who and when they answered, and with which note.",
            "approval:ledger:proposal": "When the person changed the content, the agent's own proposal is kept beside it.",
            "approval:ledger:refused": "Refused and withdrawn changes keep their diff and both versions.",
            "approval:gate:carried": "After an approval, lines of earlier versions that are still the same count as seen, as without one.",
        },
    ),
)
