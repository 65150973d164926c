"""What reaches the model."""

from spec.model import section

HOST = (
    *section(
        "What reaches the model",
        "host contract",
        {
            "host:result:reading_is_text": "Reading and searching tools answer with text only.",
            "host:result:modifying_is_both": "Modifying tools answer with text and structured content that each suffice alone.",
            "host:result:meta": 'A result carries its full structured form in `_meta["surehold/result"]` when the client asks (capability `experimental: {"surehold/result": {}}`, or `--meta`) and it is not in the structured content.',
            "host:schema:errors_fit": "Every output schema also accepts the error object.",
            "host:schema:slim": "Schemas on the wire have no titles and no `$ref`.",
            "host:schema:described": "Limits, defaults and units are in the descriptions.",
            "host:arguments:unknown_top_level": "An unknown top-level argument is ignored with a warning in the result.",
            "host:arguments:unknown_nested": "An unknown key inside an operation or edit is an error with the allowed names.",
            "host:arguments:aliases": "Common aliases are accepted silently where they cannot be misread.",
            "host:budget:page": "A read fits 2,000 lines and 40,000 characters a page, and any result 20,000 estimated tokens, settable.",
            "host:budget:by_client": "The budget is lower for hosts that are known to cut earlier, by client name.",
            "host:budget:script": "The budget counts in the host's own unit (characters, UTF-8 bytes or JSON), and estimated tokens by script.",
            "host:budget:both_fit": "Text and structured content of an answer fit together.",
            "host:budget:both_ends": "A page that is not the last names the call that goes on at its beginning and at its end.",
            "host:tools:loaded": "Hosts that load definitions late load the core tools at once, those of the claude family where it is alone, and those that `--always-load` names.",
            "host:budget:cut_unseen": "Lines that are cut from an answer, such as for a path of several KB, do not count as shown.",
            "host:budget:never_cut": "What does not fit is paged with the next call named, or saved to a readable place and named.",
            "host:text:valid_utf8": "No string leaves the server that is not valid UTF-8.",
            "host:text:escaped": "Control and bidi characters in names and diffs are shown escaped.",
        },
    ),
    *section(
        "Setting up hosts",
        "host contract",
        {
            "host:setup:files": "`surehold setup HOST [--user | --project]` writes the server, the hooks and the shell into the host's own files, shows the diff, and a second time changes nothing.",
            "host:setup:undone": "`--remove` gives back the exact bytes from before, but for what others changed since.",
            "host:setup:refused": "A settings file that cannot be read is named, and no file is changed.",
            "host:setup:own_history": "What setup writes is a change of the project's history, or of a history that the settings of a user have for themselves.",
            "host:setup:protected": "Files that setup writes are protected names.",
            "host:hook:edits": "A hook keeps the earlier bytes before the host's own edit tools write, and records what they did as one change with agent, session, turn and tool-call id.",
            "host:hook:turns": "A prompt begins a turn.",
            "host:hook:shell": "Shell commands run under `surehold -c`, which knows session, turn and tool-call id, and never decides for the person whether they may.",
            "host:hook:open": "A hook that fails says so on standard error and in a log that the doctor shows, and lets the host go on, unless it is strict.",
            "host:hook:doctor": "`surehold doctor --host HOST` starts the server and sends an event through the hooks that are in the host's settings, runs a script as the host would, and undoes what they did; it says what is covered, what is not and why, and which hooks failed.",
            "host:setup:plugins": "`make plugin` builds a Claude Code plugin with a marketplace, an Agent Plugins 1.0 folder and a Gemini extension, with the hooks that setup writes and a README of what is covered; next to setup nothing is recorded twice.",
            "host:hook:light": "A hook loads only what its event needs: no protocol library, no tools, nothing that changes files, and no history for events that it ignores.",
        },
    ),
)
