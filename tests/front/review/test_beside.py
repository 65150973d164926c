"""The review page beside a server on standard input and output, and `surehold review`, which finds it or serves one."""

import json
import os
import re
import signal
import subprocess
import sys
from http.client import HTTPConnection
from itertools import takewhile
from pathlib import Path
from urllib.parse import urlsplit

from playwright.sync_api import Page, expect

from front.mcp.client import StdioClient, surehold
from front.mcp.site import Site, text_of
from front.review.browser import needs_browser
from spec.marks import requirement
from waiting import HANG_SECONDS

_LINK = re.compile(r"Review what agents do: (http://127\.0\.0\.1:\d+/#[\w-]+)")


def link_of(client: StdioClient) -> str:
    found = _LINK.search(client.wait_for_error("Review what agents do: "))
    assert found
    return found[1]


def send(link: str, method: str, path: str, *, body: str = "", cookie: str = "") -> tuple[int, str, str]:
    """Send a request as the page would; return status, cookie and body."""
    place = urlsplit(link)
    connection = HTTPConnection(place.hostname or "", place.port, timeout=HANG_SECONDS)
    headers = {"Origin": f"http://{place.netloc}", "Cookie": cookie}
    connection.request(method, path, body, headers)
    answer = connection.getresponse()
    found = answer.status, (answer.getheader("set-cookie") or "").partition(";")[0], answer.read().decode()
    connection.close()
    return found


def sign_in_with(link: str) -> tuple[int, str]:
    status, cookie, _ = send(link, "POST", "/review/sign-in", body=f"token={urlsplit(link).fragment}")
    return status, cookie


def review(site: Site, *words: str, **environment: str) -> list[str]:
    """Run `surehold review` where a page is served; return what it prints."""
    command = surehold("review", "--root", site.root, "--state-dir", site.state, *words)
    done = subprocess.run(
        [sys.executable, *command], stdout=subprocess.PIPE, check=True, env={**os.environ, **environment}, text=True
    )
    return done.stdout.splitlines()


@needs_browser
@requirement("approval:page:beside")
def test_a_question_over_stdio_is_answered_on_the_page_beside_it(site: Site, page: Page) -> None:
    with site.start("--review", "--mode", "default") as agent:
        call = agent.start_call("create_file", {"path": "a.txt", "content": "one\n"})
        page.goto(link_of(agent))
        question = page.locator("article.question")
        expect(question).to_contain_text("claude-code wants to create a.txt")
        question.get_by_role("button", name="Allow", exact=True).click()

        assert "a.txt" in text_of(agent.answer(call))
        assert site.get("a.txt") == b"one\n"
        expect(page.locator("#change-rows")).to_contain_text("a.txt")
    expect(page.get_by_role("alert")).to_contain_text("Not connected since")
    assert agent.process.returncode == 0
    assert agent.junk == [], "standard output holds the protocol alone"


@requirement("approval:page:beside")
def test_a_form_and_the_page_ask_together_and_the_call_ends_with_the_server(site: Site) -> None:
    with site.start("--review", "--mode", "default", capabilities={"elicitation": {}}) as agent:
        link, call = link_of(agent), agent.start_call("create_file", {"path": "a.txt", "content": "x"})
        agent.wait_for(lambda told: any(one.get("method") == "elicitation/create" for one in told))
        _, cookie = sign_in_with(link)
        assert "The client shows it too" in send(link, "GET", "/", cookie=cookie)[2]
        agent.process.send_signal(signal.SIGTERM)
        assert agent.raw_answer(call)
    assert not (site.root / "a.txt").exists()


@requirement("approval:page:sign_in")
def test_a_sign_in_outlives_the_server_and_its_port_is_the_same(site: Site) -> None:
    with site.start("--review") as agent:
        first = link_of(agent)
        status, cookie = sign_in_with(first)
        assert (status, send(first, "GET", "/", cookie=cookie)[0]) == (303, 200)
    with site.start("--review") as agent:
        second = link_of(agent)
        assert urlsplit(second).netloc == urlsplit(first).netloc
        assert urlsplit(second).fragment != urlsplit(first).fragment
        assert send(second, "GET", "/", cookie=cookie)[0] == 200
        assert sign_in_with(first)[0] == 401, "the old link is of no use"
        with site.start("--review") as other:
            assert urlsplit(link_of(other)).netloc != urlsplit(second).netloc


@requirement("approval:page:review")
def test_review_finds_the_page_that_is_served_and_its_link_signs_in_once(site: Site, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf %s "$1" > {seen}\n', encoding="utf-8")
    browser.chmod(0o755)
    with site.start("--review") as agent:
        served = link_of(agent)
        (shown,) = review(site, BROWSER=str(browser))
        assert seen.read_text() == shown
        assert shown.partition("#")[0] == served.partition("#")[0]
        assert [sign_in_with(shown)[0] for _ in range(2)] == [303, 401]
        facts = json.loads("".join(review(site, "--json")))
        assert (facts["running"], facts["answers"], facts["pid"]) == (True, True, agent.process.pid)
        assert sign_in_with(facts["link"])[0] == 303
        assert send(served, "POST", "/review/code", body="door=guess")[0] == 403
    assert list((site.state / "review").glob("*.page")) == []
    assert {path.stat().st_mode & 0o077 for path in (site.state / "review").iterdir() if path.name == "key"} == {0}


@requirement("approval:page:review")
def test_review_serves_the_page_itself_and_says_that_no_agent_asks_there(site: Site) -> None:
    with site.open() as workspace:
        workspace.session(agent="demo").create("a.txt", "one\n")
    command = surehold("review", "--root", site.root, "--state-dir", site.state, "--json")
    with subprocess.Popen([sys.executable, *command], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            facts = json.loads("".join(takewhile(lambda line: line != "}\n", process.stdout)) + "}")
            assert (facts["running"], facts["answers"]) == (False, False)
            _, cookie = sign_in_with(facts["link"])
            shown = send(facts["link"], "GET", "/", cookie=cookie)[2]
            assert "Agents ask when their server was started with" in shown
            assert "a.txt" in shown
            assert "surehold review" in send(facts["link"], "GET", "/")[2], "who is not signed in is told how"
        finally:
            process.terminate()
    assert process.returncode == 0


@requirement("history:status:questions")
def test_status_counts_the_questions_of_the_servers_that_know_them(site: Site) -> None:
    def status(*words: str) -> str:
        command = surehold("status", "--root", site.root, "--state-dir", site.state, *words)
        return subprocess.run([sys.executable, *command], stdout=subprocess.PIPE, check=True, text=True).stdout

    with site.open() as workspace:
        workspace.session(agent="demo").create("a.txt", "one\n")
    assert json.loads(status("--json"))["questions"] == 0
    assert "none open" in status()
    with site.start("--review", "--mode", "default", capabilities={"elicitation": {}}) as agent:
        link = link_of(agent)
        assert json.loads(status("--json"))["questions"] == 0
        agent.start_call("create_file", {"path": "b.txt", "content": "x"})
        agent.wait_for(lambda told: any(one.get("method") == "elicitation/create" for one in told))
        assert json.loads(status("--json"))["questions"] == 1
        assert "1 open: surehold review" in status()
        assert send(link, "POST", "/review/count", body="door=guess")[0] == 403
        agent.process.send_signal(signal.SIGTERM)
    assert json.loads(status("--json"))["questions"] == 0
