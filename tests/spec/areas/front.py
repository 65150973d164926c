"""The command line, the server, the library, the page and the ACP agent."""

from spec.model import section

FRONT = (
    *section(
        "The command line",
        "front end contract",
        {
            "front:cli:log": "`surehold log` lists what happened, newest first.",
            "front:cli:show": "`surehold show CHANGE` shows one change with its diff.",
            "front:cli:diff": "`surehold diff CHANGE` prints a diff that other tools can apply.",
            "front:cli:undo": "`surehold undo CHANGE` takes back any earlier change, or the newest.",
            "front:cli:redo": "`surehold redo CHANGE` makes an undone change again.",
            "front:cli:trash": "`surehold trash list|restore|empty` shows, brings back and gives up deleted files.",
            "front:cli:restore": "`surehold restore` brings a deleted file back.",
            "front:cli:verify": "`surehold verify` exits 0 on a whole ledger, and names the first broken entry with exit code 1.",
            "front:cli:recover": "`surehold recover` closes what dead processes left, and says what it did.",
            "front:cli:doctor": "`surehold doctor` tries the mechanisms on the user's file system and says which promise holds there.",
            "front:cli:doctor_hosts": "`surehold doctor --hosts` prints how much of an answer the model of each known host is given.",
            "front:cli:gc": "`surehold gc --keep 30d` prunes and says what it removed.",
            "front:cli:version": "`surehold version` prints the version.",
            "front:cli:json": "Every command takes `--json` and then prints one JSON document.",
            "front:cli:root": "The workspace is `--root DIR` or the current directory; `--state-dir` names the state.",
            "front:cli:terminal": "Colour and fitted tables appear on a terminal only; pipes get plain, uncut text.",
            "front:cli:safe_text": "Nothing from a file, a name or an agent reaches the terminal unescaped.",
            "front:exit:done": "Exit code 0 means done.",
            "front:exit:refused": "Exit code 1 means refused, with the message and the next step on standard error.",
            "front:exit:usage": "Exit code 2 means wrong usage.",
            "front:exit:bug": "Exit code 3 means a bug in Surehold itself, not a refusal.",
            "front:exit:interrupted": "Exit code 130 means interrupted, and nothing is half done.",
            "front:make:run": "`make run` drives the real server in a demonstration, and ends by itself.",
            "front:library:open_workspace": "`open_workspace(root…)` and `workspace.session(agent=…)` give objects with typed methods to read, change and undo.",
        },
    ),
    *section(
        "The server and the library",
        "front end contract",
        {
            "front:make:serve": "`make serve` keeps the real server running, as `make run` uses it.",
            "front:mcp:flags": "`surehold mcp` takes roots, `--tools`, `--http`, `--mode`, `--state-dir`, `--contract-errors` and `--lean`.",
            "front:mcp:stdio": "`surehold mcp ROOT…` speaks MCP over stdio, with logs on standard error only.",
            "front:mcp:http": "`--http HOST:PORT` speaks streamable HTTP.",
            "front:mcp:eras": "Both protocol eras are served: initialize (2025-06-18, 2025-11-25) and stateless 2026-07-28.",
            "front:mcp:error_planes": "Tool failures are results with `isError`; unknown tools and malformed requests are protocol errors.",
            "front:mcp:robust": "Surrogates, stray prints, junk lines, 10 MB arguments and disconnects neither kill nor block the server.",
            "front:mcp:malformed": "A malformed request with a readable id is answered with an error of that id.",
            "front:mcp:signals": "SIGTERM, SIGINT, SIGHUP and SIGQUIT end a server in good order; one that is ignored from outside stays ignored.",
            "front:mcp:connection_limits": "HTTP closes connections whose request does not arrive in time, and the longest waiting one when there are too many: strangers keep no client out.",
            "front:mcp:session_limits": "HTTP forgets clients that are idle for 24 hours, a setting, and the longest idle one beyond 1,000; a forgotten one begins again.",
            "front:mcp:quiet_log": "The same error of the HTTP server is logged once a minute.",
            "front:start:safe_path": "Modules in the working directory are never imported: neither by the console script nor, once the package runs, by `python -m surehold`.",
            "front:mcp:cancel": "A cancelled call leaves no half write.",
            "front:mcp:resources": "Workspace files and the ledger are resources, with subscriptions for outside changes.",
            "front:mcp:safe_http": "HTTP binds to loopback, checks Origin and Host, and requires a token elsewhere.",
            "front:serve:mcp": "`surehold serve ROOT…` serves HTTP MCP at `/mcp` on 127.0.0.1, token-protected and origin-checked.",
            "front:cli:tool": "`surehold tool NAME --json '{…}'` runs any tool once.",
            "front:cli:schema": "`surehold schema --format openai|anthropic|mcp` exports the tools.",
            "front:library:tools": "A session has a typed method for every tool.",
            "front:library:adapters": "Tool lists for OpenAI and Anthropic come from the same definitions.",
            "front:docs:clients": "Every install snippet for a client works with the real flags.",
        },
    ),
    *section(
        "Reading and editing from the shell",
        "front end contract",
        {
            "front:cli:read": "`surehold read [--hashes] FILE` prints a file, with anchors when asked.",
            "front:cli:edit": "`surehold edit FILE` applies operations as JSON from a file or standard input, with `--dry-run`.",
            "front:cli:prompt": "`surehold prompt` prints the system-prompt section.",
        },
    ),
    *section(
        "ACP",
        "front end contract",
        {
            "front:acp:agent": "`surehold acp ROOT…` is an ACP agent without a model that runs the tool calls of a prompt."
        },
    ),
    *section(
        "Searching and viewing from the shell",
        "front end contract",
        {
            "front:cli:grep": "`surehold grep` searches contents for people.",
            "front:cli:glob": "`surehold glob` finds files for people.",
            "front:cli:view": "`surehold view` summarises images and PDF pages on a terminal.",
        },
    ),
    *section(
        "The review page",
        "front end contract",
        {"front:serve:page": "`surehold serve` shows a page at `/` to review, approve and undo what agents did."},
    ),
)
