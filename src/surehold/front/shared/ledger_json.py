"""Turns ledger entries, receipts, sessions and trash items into plain data, for `--json`, the MCP log and the page."""

from typing import TYPE_CHECKING, Any

from surehold.text.diff_rows import count_rows

if TYPE_CHECKING:
    from surehold.stores.base import Call, Change, Entry
    from surehold.stores.upkeep import TrashItem
    from surehold.text.snapshot import Version
    from surehold.workspace.proposal import FileReceipt, Receipt


def count_changed_lines(change: "Change") -> tuple[int, int]:
    """Return how many lines were added and removed, also where the diff is cut."""
    if change.added or change.removed:
        return change.added, change.removed
    return count_rows(change.diff)


def format_move(path: str, to_path: str) -> str:
    return f"{path} → {to_path}" if to_path else path


def format_command(call: "Call") -> str:
    """Return the command of a run as one would type it; empty for other calls."""
    import shlex

    return shlex.join(call.argv) if call.argv else ""


def known_exit_code(call: "Call") -> int | None:
    """Return how a command ended; None if its supervisor died before."""
    return None if call.exit_code < 0 else call.exit_code


def entry_record(entry: "Entry", *, undone_by: str = "") -> dict[str, Any]:
    from surehold.workspace.undo.recorded_changes import changes_undone_by

    call, change = entry.call, entry.change
    added, removed = count_changed_lines(change)
    return {
        "seq": entry.seq,
        "change_id": entry.change_id,
        "timestamp": entry.timestamp,
        "agent": call.agent,
        "session": call.session,
        "turn": call.turn or None,
        "call_id": call.call_id or None,
        "tool": call.tool,
        "operation": call.operation,
        "reason": call.reason,
        **({"argv": list(call.argv), "exit_code": known_exit_code(call)} if call.argv else {}),
        "path": change.path,
        "to_path": change.to_path or None,
        "before": _version_record(change.before),
        "after": _version_record(change.after),
        "added": added,
        "removed": removed,
        "ok": entry.ok,
        "error_kind": entry.error_kind or None,
        "message": entry.message,
        "undoes": call.undoes or None,
        "undoes_all": changes_undone_by(entry),
        "undone_by": undone_by or None,
        "trash_id": change.trash_id or None,
        "approval": approval_record(entry),
        "previous_hash": entry.previous or None,
        "hash": entry.hash,
    }


def approval_record(entry: "Entry") -> dict[str, Any] | None:
    """Return what is known about the approval of a change; None for what nothing was decided about."""
    approval, proposal = entry.call.approval, entry.change.proposal_sha256
    if approval is None:
        return None
    return {
        "asked": approval.asked,
        "rule": approval.rule,
        "where": approval.where or None,
        "who": approval.who or None,
        "at": approval.at or None,
        "note": approval.note or None,
        "edited": bool(proposal or approval.left_out),
        "proposal_sha256": proposal or None,
        **({"left_out": approval.left_out} if approval.left_out else {}),
    }


def describe_approval(entry: "Entry") -> dict[str, str]:
    """Return the approval of a change in words, by the label of each fact; nothing when no one was asked."""
    approval, proposal = entry.call.approval, entry.change.proposal_sha256
    if approval is None or not approval.asked:
        return {}
    by, moment = f" by {approval.who}" if approval.who else "", f"{approval.at[:19].replace('T', ' ')} UTC"
    answer = f"answered at the {approval.where}{by}, {moment}" if approval.where else f"no answer until {moment}"
    facts = {
        "Asked": f"{approval.rule}; {answer}",
        "Reply": approval.note,
        "Edited": f"the person changed the content; the agent proposed {proposal}" if proposal else "",
        "Left out": f"the person left files out; they are in {approval.left_out}" if approval.left_out else "",
    }
    return {label: text for label, text in facts.items() if text}


def entry_summary(entry: "Entry") -> dict[str, Any]:
    """Return what a model needs of an entry; what is empty is left out."""
    call, change = entry.call, entry.change
    row: dict[str, Any] = {
        "seq": entry.seq,
        "changeId": entry.change_id,
        "timestamp": entry.timestamp,
        "ok": entry.ok,
        "operation": call.operation,
        "tool": call.tool,
        "agent": call.agent,
        "session": call.session,
        "turn": call.turn,
        "callId": call.call_id,
        "path": change.path,
        "toPath": change.to_path,
        "beforeSha256": change.before.sha256 if change.before else "",
        "afterSha256": change.after.sha256 if change.after else "",
        "reason": call.reason,
        "command": format_command(call),
        "exitCode": known_exit_code(call) if call.argv else "",
        "errorKind": entry.error_kind,
        "message": entry.message,
    }
    if (approval := approval_record(entry)) is not None:
        approval["proposalSha256"] = approval.pop("proposal_sha256")
        row["approval"] = {key: value for key, value in approval.items() if value is not None}
    return {key: value for key, value in row.items() if value != ""}


def receipt_record(receipt: "Receipt") -> dict[str, Any]:
    return {
        "change_id": receipt.change_id or None,
        "dry_run": receipt.dry_run,
        "already_applied": receipt.already_applied,
        "replayed": receipt.replayed,
        "files": [_file_record(one) for one in receipt.files],
        "warnings": list(receipt.warnings),
    }


def trash_record(item: "TrashItem") -> dict[str, Any]:
    return {
        "id": item.id,
        "path": item.path,
        "sha256": item.version.sha256,
        "size": item.version.size,
        "trashed": item.trashed,
        "change_id": item.change_id,
        "agent": item.agent,
        "session": item.session,
        "state": item.state,
    }


def _version_record(version: "Version | None") -> dict[str, Any] | None:
    if version is None:
        return None
    mode = f"{version.meta.mode:04o}" if version.meta else None
    return {"sha256": version.sha256, "size": version.size, "mode": mode}


def _file_record(receipt: "FileReceipt") -> dict[str, Any]:
    change = receipt.change
    added, removed = count_changed_lines(change)
    return {
        "path": receipt.path,
        "to_path": change.to_path or None,
        "changed": receipt.changed,
        "before_sha256": receipt.before_sha256,
        "after_sha256": receipt.after_sha256,
        "added": added,
        "removed": removed,
        "diff": change.diff,
        "diff_truncated": change.diff_truncated,
        "trash_id": change.trash_id or None,
        "corrections": [{"type": one.type, "detail": one.detail} for one in receipt.plan.corrections],
        "warnings": list(receipt.warnings),
    }
