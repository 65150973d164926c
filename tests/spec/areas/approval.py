"""Approval: what a person allows is what happened, and is written down."""

from spec.model import section

APPROVAL = (
    *section(
        "Approval",
        "approval contract",
        {
            "approval:shown:totals": "A question states the totals first: files, lines added and removed, bytes.",
            "approval:shown:lines": "A line that is too long is shown by its beginning and its end, and counts as unseen.",
            "approval:shown:pages": "The review page shows everything in pages; until all of it was opened, the answer is `Allow N unseen lines`.",
            "approval:shown:form": "A form that does not show everything names the address of the review page that does, and offers `allow N unseen lines once`, and no plain yes.",
            "approval:shown:no_page": "A form that cannot show everything, with no review page served, refuses the change and says the command that serves one.",
            "approval:shown:protected": "A protected path cannot be allowed where not everything of the change can be shown.",
            "approval:shown:moves": "A question about a move shows the file that is overwritten, and where a protected path is among the files all that the moved file holds; both count as lines to be seen.",
            "approval:shown:no_room": "Characters that take no room are visible where a person looks and decides, unless they make one word or one picture with their neighbours.",
            "approval:shown:escaped": "Control and direction characters are visible in the box where content is edited, and come back as the same bytes.",
            "approval:queue:gone": "A question ends when its client is gone; the page then offers only to dismiss it.",
            "approval:queue:age": "A question on the page says how long ago it was asked and how long it waits.",
            "approval:queue:form_age": "A question in a form says when it was asked and how long it waits.",
            "approval:queue:limits": "Questions at clients and questions on the page do not take each other's places.",
            "approval:page:connection": "The page says when it is not connected, and leads to the sign-in when the sign-in is no longer valid.",
            "approval:page:beside": "`surehold mcp --review` serves the page beside standard input and output, prints the link on standard error, and the questions of that server are answered there.",
            "approval:page:lan": "`surehold serve --lan` serves the page alone over TLS at an address of the local network, with a QR code whose link signs one browser in once; the certificate is the person's, or made for the address and its fingerprint is told.",
            "approval:page:sign_in": "A sign-in outlives the server, and the page of a workspace comes back at the same port where that is free.",
            "approval:page:review": "`surehold review` opens the page that is served for the workspace, by a link that signs in once, or serves one; where no agent can ask, the page says so.",
            "approval:page:files": "New and deleted files of a change can be left out of what is allowed too; the rest is one change, the ledger says `edited`, and what was left out is kept as refused.",
            "approval:page:parts": "Where a change is shown whole and is plain text, parts of it can be left out of what is allowed, and the agent is told.",
            "approval:page:notify": "A browser notification comes with a new question, if the person asked for that with a button.",
            "approval:page:events": "News come as server-sent events; the page asks by itself only while they do not come.",
            "approval:page:axe": "No page has anything that axe-core objects to, light or dark.",
            "approval:page:reader": "News on the page take away neither scroll position nor focus nor open boxes.",
            "approval:callback:answer": "A callback answers with `True`, `False` or an `Approval`; nothing else allows a change.",
            "approval:ledger:rule": "The ledger says of every change whether a person was asked, by which rule, where, who and when they answered, and with which note.",
            "approval:ledger:proposal": "When the person changed the content, the agent's own proposal is kept beside it.",
            "approval:ledger:killed": "What a killed server had asked is in the ledger as refused, with its diff, once another server starts or `recover` is run.",
            "approval:ledger:unanswered": "A question that is answered between two calls and never is leaves an entry with its diff, when its time is over or the server ends.",
            "approval:ledger:refused": "Refused and withdrawn changes keep their diff and both versions.",
            "approval:gate:carried": "After an approval, lines of earlier versions that are still the same count as seen, as without one.",
        },
    ),
)
