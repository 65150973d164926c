"""History for people."""

from spec.model import section

HISTORY = (
    *section(
        "History for people",
        "history contract",
        {
            "history:selectors:bad": "Selectors that name nothing, or several, or a time in the future, are refused in clear words, and nothing changes.",
            "history:log:selectors": "`log` takes selectors, shows reasons, and lists files and diffs on request.",
            "history:log:limit": "`log --limit` counts changes.",
            "history:log:follow": "`log --follow` shows changes as they happen.",
            "history:undo:selection": "Everything that selectors name is undone as one change, with a preview on request; `redo` makes it again.",
            "history:undo:keeps_later": "Undoing a selection keeps later work.",
            "history:undo:any_order": "Undoing everything, in any order and any parts, gives the original bytes.",
            "history:undo:runs": "Commands that ran under capture are undone with the other changes of a selection, and made again with them.",
            "history:undo:path": "Selectors with paths undo only what was done to these files.",
            "history:undo:partial": "Conflicts are named by file and line; `--partial` undoes what can be undone.",
            "history:rewind:turn": "`rewind` undoes the last turn that is in effect, and can be undone itself.",
            "history:diff:net": "`diff` with selectors is the difference between the files without these changes and the files now.",
            "history:blame:lines": "`blame` names change, agent, session, turn and reason of each line, and `outside` where nothing is known.",
            "history:read:earlier": "`read` shows a file right after a change, before it, or at a time.",
            "history:revert:files": "`revert` removes outside damage, brings deleted files back, and goes back to a change; it can be undone.",
            "history:sessions:facts": "`sessions` lists who, when, turns, changes, files and lines.",
            "history:status:facts": "`status` names the workspace, the agents at work, outside edits and the last changes.",
            "history:export:patch": "`export` writes the net difference as a patch that `patch` applies.",
            "history:export:jsonl": "`export --format jsonl` writes entries with their diffs.",
            "history:export:bundle": "A bundle is verified without the workspace, and every flipped bit is found.",
            "history:commit:exact": "`commit` commits exactly the selected changes, with trailers; files, index, stash and other work stay.",
            "history:commit:busy": "`commit` refuses a repository in the middle of a merge, a rebase or the like.",
            "history:config:sources": "`config` shows every setting with its value and where it is from; an option wins.",
            "history:config:tightens": "A `surehold.toml` in the workspace can only tighten; whatever else it says has no effect, and is named.",
            "history:config:protected": "Agents cannot write `surehold.toml` without approval.",
            "history:config:bad": "Settings that cannot be understood are refused with the file and the problem, before anything happens.",
            "history:completion:shells": "`completion` prints a script for bash, zsh or fish that completes commands, options and values.",
            "history:terminal:pager": "On a terminal, long answers go through the pager of the person; elsewhere they never do.",
            "history:library:selectors": "The library selects, undoes and redoes changes by the same selectors, as keyword arguments.",
            "history:blame:git": "On a replayed history of distinct lines, blame and net difference agree with git.",
        },
    ),
)
