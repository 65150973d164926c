"""Renders the frame of every page, and the sign-in. Everything from files or agents is escaped."""

from html import escape

from surehold.text.escape import escape_text


def render_document(title: str, body: str, *, notice: str = "", state: str = "", project: str = "") -> str:
    name = escape(escape_text(project)) if project else "what agents did, and what they ask for"
    status = f'<p class="notice" role="status">{escape(escape_text(notice))}</p>' if notice else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{escape(title)}</title>
<link rel="icon" href="/review/icon.svg" type="image/svg+xml">
<link rel="stylesheet" href="/review/page.css"><script src="/review/page.js" defer></script>
</head>
<body data-state="{escape(state)}">
<aside id="bars" aria-label="State of this page"><p class="alert" id="connection" role="alert" hidden></p>
<p class="alert" id="news" hidden><a href="#questions">News</a></p>
<p class="alert" id="stale" hidden><a href="">Something has changed since this page was made. Load it again.</a></p></aside>
<header><a href="/">Surehold</a> <span>{name}</span>
<nav aria-label="Pages"><a href="/review/sessions">Conversations</a> <a href="/review/changes">Find changes</a>
<a href="/review/trash">Trash</a> <button id="notify" type="button" hidden>Notify me of questions</button></nav></header>
<main>{status}{body or "<h1>This cannot be shown</h1>"}</main>
<dialog id="keys"><h2>Keys</h2><dl><dt>j, k</dt><dd>next, previous</dd><dt>y, n</dt><dd>go to Allow, Refuse</dd>
<dt>u</dt><dd>go to Undo</dd><dt>?</dt><dd>this list</dd></dl><form method="dialog"><button>Close</button></form></dialog>
</body>
</html>
"""


def render_sign_in(project: str, *, wrong: bool = False, is_chosen: bool = False) -> str:
    source = (
        "Or enter the token that the server was given, in a file or in <code>SUREHOLD_TOKEN</code>:"
        if is_chosen
        else "Or enter the token: what follows <code>#</code> in the link that the server printed when it started."
    )
    problem = (
        '<p class="notice" role="alert">This is not the token, or the link was used or is too old.</p>' if wrong else ""
    )
    return render_document(
        "Surehold: sign in",
        f"""<section class="card"><h1>Sign in</h1>{problem}
<p>This page shows what agents changed in <strong>{escape(escape_text(project))}</strong>, and lets you answer for them,
so it is for you alone. This browser is not signed in, or the server has another token now.</p>
<p>Run <code>surehold review</code> in the project: it prints a link that signs you in, and opens it.</p>
<form method="post" action="/review/sign-in" id="sign-in"><p>{source}</p>
<label>Token <input name="token" type="password" autocomplete="off" autofocus required></label>
<button>Sign in</button></form>
<p class="quiet">You stay signed in for 30 days, also when the server is started again.</p></section>""",
        project=project,
    )
