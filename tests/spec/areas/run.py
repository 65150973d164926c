"""What commands do."""

from spec.model import section

RUN = (
    *section(
        "What commands do",
        "run contract",
        {
            "run:undo:exact": "`undo` of a run brings back bytes, links, directories, modes, owners, times, attributes, holes and hard links.",
            "run:redo:exact": "`redo` of a run gives what the command had left, times included.",
            "run:streams:unchanged": "Standard input, output, error and the exit code of `surehold run` are those of the command.",
            "run:exit:codes": "A command that a signal ends gives 128 + n, one that is not found 127, one that cannot be executed 126.",
            "run:nothing:no_entry": "A command that changes nothing leaves no entry, and its report has no change id.",
            "run:nested:joins": "A run inside of a run joins the change of the outer one.",
            "run:background:recorded": "What a command leaves running is named, and recorded into the same change when it ends.",
            "run:guard:refuses": "Before the Nth deletion the process tree waits for a person; without an allowing answer the call fails with EPERM.",
            "run:guard:page": "A question of the guard is shown on the review page of every server of the workspace, with the command and what it deleted; the first answer counts, and the ledger has it.",
            "run:guard:form": "A question of the guard is shown in a form at the MCP client whose host started the command, and at no other client.",
            "run:guard:editor": "A command that an ACP agent runs is reported as a call, and the editor is asked while the command waits.",
            "run:guard:callback": "The approver of a program is asked while the command that it runs waits.",
            "run:confine:writes": "With `--confine` a command writes only below the roots and in temporary directories.",
            "run:killed:recovered": "When the supervisor is killed the command changes nothing more, and what was kept is recorded by the next command.",
            "run:report:fields": "`--report` names the change, the exit code, and how many paths were created, changed, deleted and moved.",
            "run:links:outside": "A file of the workspace that a command changes by a name outside of it is kept like any other; that it has such a name is reported.",
            "run:dumps:kept": "A core dump that the kernel writes into the workspace is recorded, and the file that it replaces comes back.",
            "run:report:unwritable": "A report that cannot be written is refused before anything runs; one that cannot be written in the end changes neither the exit code nor the record.",
            "run:best_effort:compares": "Where capture is impossible, that is said before anything runs; `--best-effort` compares the tree before and after, and is never complete.",
            "run:call:recorded": "The tool call of the host that a command belongs to is recorded with it.",
            "run:history:command": "`log` and `show` name the command and its exit code, and leave out directories whose time alone changed.",
            "run:history:left_out": "Undoing a selection or a turn names the commands of it that still run, which are left out.",
            "run:history:session": "What an agent runs without a session is a session by itself.",
            "run:history:still_running": "`undo` without arguments refuses, with the command, while the newest change is that of a command that still runs.",
            "run:library:receipt": "`workspace.run([...])` returns output, exit code and what changed.",
            "run:library:plan_mode": "On behalf of a session in plan mode no command runs.",
            "run:library:awaitable": "`surehold.aio` has the same `run`, `changes`, `undo` and `redo`, awaitable; to cancel a command ends it, and what it did is recorded.",
            "run:report:complete": "`complete: true` is never wrong: whatever could not be kept is named.",
        },
    ),
)
