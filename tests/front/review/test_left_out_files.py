"""New and deleted files are left out of what is allowed: without JavaScript, at any process, and never all of them."""

import re
from html import unescape
from urllib.parse import urlencode

import pytest

from front.mcp.site import HttpServer, Site
from front.review.test_page import Agent, cookie_of
from spec.marks import requirement
from surehold import Settings, Workspace, open_workspace
from surehold.errors import InvalidArgument, PermissionDenied
from surehold.front.shared.ledger_json import approval_record, describe_approval
from surehold.stores.base import LedgerQuery
from surehold.workspace.access.permission import Approval, PermissionRequest
from waiting import wait_until

pytestmark = requirement("approval:page:files")
PATCH = """diff --git a/new/one.txt b/new/one.txt
new file mode 100644
--- /dev/null
+++ b/new/one.txt
@@ -0,0 +1 @@
+one
diff --git a/two.txt b/two.txt
new file mode 100644
--- /dev/null
+++ b/two.txt
@@ -0,0 +1 @@
+two
diff --git a/kept.txt b/kept.txt
--- a/kept.txt
+++ b/kept.txt
@@ -1 +1 @@
-old
+new
diff --git a/gone.txt b/gone.txt
deleted file mode 100644
--- a/gone.txt
+++ /dev/null
@@ -1 +0,0 @@
-to go
"""
NAMES = ("new/one.txt", "two.txt", "kept.txt", "gone.txt")


class PlainReader:
    """A person whose browser runs no scripts."""

    def __init__(self, server: HttpServer) -> None:
        self._server, self._headers = server, cookie_of(server)

    def look(self, path: str = "/") -> str:
        return self._server.send("GET", path, headers=self._headers)[2].decode()

    def wait_for_question(self) -> str:
        wait_until(lambda: "/review/question/" in self.look())
        return re.findall(r'action="/review/question/([\w-]+)"', self.look())[0]

    def boxes(self) -> dict[str, str]:
        return dict(re.findall(r'name="(part-\d+-\d+)" checked form="[^"]*"> (take this \w+)<', self.look()))

    def allow(self, question: str, *ticked: str) -> str:
        """Send the form as a browser does, and return what the next page says."""
        form = {"decision": "allow", "unseen": "0", "parts": "1", **dict.fromkeys(ticked, "on")}
        headers = {
            **self._headers,
            "Origin": f"http://127.0.0.1:{self._server.port}",
            "Content-Type": "application/x-www-form-urlencoded",
        }
        sent = self._server.send("POST", f"/review/question/{question}", body=urlencode(form).encode(), headers=headers)
        shown = self.look(sent[1]["location"])
        return unescape(re.findall(r'role="status"[^>]*>(.*?)</', shown)[0])


def ask(site: Site, server: HttpServer) -> Agent:
    site.put("kept.txt", "old\n")
    site.put("gone.txt", "to go\n")
    return Agent(server, "apply_patch", patch=PATCH)


def files_of(site: Site) -> dict[str, bytes]:
    return {name: site.get(name) for name in NAMES if (site.root / name).exists()}


def test_files_are_left_out_on_the_page_and_the_rest_is_one_change(site: Site, server: HttpServer) -> None:
    agent, person = ask(site, server), PlainReader(server)
    question = person.wait_for_question()
    assert person.boxes() == {
        "part-0-0": "take this file",
        "part-1-0": "take this file",
        "part-2-0": "take this part",
        "part-3-0": "take this file",
    }

    assert person.allow(question, "part-1-0", "part-2-0") == "Allowed."

    said = agent.text()
    assert "Patch applied: 2 files, 2 hunks" in said
    assert "`new/one.txt` stays as it is: the person left it out." in said
    assert "`gone.txt` stays as it is" in said
    assert files_of(site) == {"two.txt": b"two\n", "kept.txt": b"new\n", "gone.txt": b"to go\n"}
    assert not (site.root / "new").exists()
    check_ledger(site)


def check_ledger(site: Site) -> None:
    """Both files that were allowed are one change, which says where the others are; undoing it gives back what was there."""
    with site.open() as workspace:
        made = [row for row in workspace.history.log() if row.ok and row.call.operation == "patch"]
        assert sorted(row.change.path for row in made) == ["kept.txt", "two.txt"]
        record = approval_record(made[0])
        assert record is not None
        assert record["edited"] is True
        refused = workspace.store.list_entries(LedgerQuery(change_id=record["left_out"]))
        assert sorted((row.change.path, row.ok, row.message) for row in refused) == [
            (name, False, "The person left this out, and allowed the rest of the change.")
            for name in ("gone.txt", "new/one.txt")
        ]
        assert record["left_out"] in describe_approval(made[0])["Left out"]
        proposed = workspace.history.proposed_diff(made[0].change_id)
        assert ("+one" in proposed, "-to go" in proposed, "+two" in proposed) == (True, True, False)
        workspace.history.undo(made[0].change_id)
        assert workspace.history.verify().ok
    assert files_of(site) == {"kept.txt": b"old\n", "gone.txt": b"to go\n"}


def test_files_are_left_out_at_the_page_of_another_process(site: Site, server: HttpServer) -> None:
    agent = ask(site, server)
    with site.serve("serve", "--port", "0", "--mode", "default") as other:
        person = PlainReader(other)
        question = person.wait_for_question()
        assert len(person.boxes()) == 4
        assert person.allow(question, "part-1-0", "part-2-0") == "Allowed."
        assert "Patch applied: 2 files" in agent.text()
    check_ledger(site)


def test_nothing_is_decided_when_nothing_is_left(site: Site, server: HttpServer) -> None:
    agent, person = ask(site, server), PlainReader(server)
    question = person.wait_for_question()

    assert "Nothing was decided. No part was chosen." in person.allow(question)

    assert files_of(site) == {"kept.txt": b"old\n", "gone.txt": b"to go\n"}
    assert person.allow(question, *person.boxes()) == "Allowed."
    assert "Patch applied: 4 files" in agent.text()
    assert files_of(site) == {"new/one.txt": b"one\n", "two.txt": b"two\n", "kept.txt": b"new\n"}


def open_asking(site: Site, answer: Approval) -> Workspace:
    site.put("kept.txt", "old\n")
    site.put("gone.txt", "to go\n")
    settings = Settings(
        state_dir=site.state, mode="default", approver=lambda request: answer if request.files else False
    )
    return open_workspace(site.root, settings=settings)


@pytest.mark.parametrize(
    ("left_out", "contents", "error"),
    [
        (NAMES, {}, PermissionDenied),
        (("other.txt",), {}, InvalidArgument),
        (("two.txt",), {"two.txt": "mine"}, InvalidArgument),
    ],
)
def test_an_answer_that_leaves_nothing_or_contradicts_itself_writes_nothing(
    site: Site, left_out: tuple[str, ...], contents: dict[str, str], error: type[Exception]
) -> None:
    answer = Approval(allowed=True, left_out=left_out, contents=contents)
    with open_asking(site, answer) as workspace, pytest.raises(error):
        workspace.session().apply_patch(PATCH)
    assert files_of(site) == {"kept.txt": b"old\n", "gone.txt": b"to go\n"}


def test_a_file_that_was_left_out_may_change_while_the_person_decides(site: Site) -> None:
    answer = Approval(allowed=True, left_out=("gone.txt", "two.txt"))

    def answer_late(request: PermissionRequest) -> Approval:
        assert request.files
        site.put("gone.txt", "other\n")
        site.put("two.txt", "mine\n")
        return answer

    site.put("kept.txt", "old\n")
    site.put("gone.txt", "to go\n")
    settings = Settings(state_dir=site.state, mode="default", approver=answer_late)
    with open_workspace(site.root, settings=settings) as workspace:
        workspace.session().apply_patch(PATCH)
    assert files_of(site) == {
        "new/one.txt": b"one\n",
        "two.txt": b"mine\n",
        "kept.txt": b"new\n",
        "gone.txt": b"other\n",
    }
