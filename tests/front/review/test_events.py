"""How news reach the page: as events, with a notification if that is wanted; by asking only while no events come."""

from importlib.resources import files

from playwright.sync_api import Browser, Page, Request, expect

from front.mcp.site import HttpServer, Site
from front.review.browser import WAIT_MILLISECONDS, needs_browser
from front.review.test_page import Agent, sign_in
from spec.marks import requirement
from surehold.front.review.site import ReviewPage

pytestmark = needs_browser
_RECORD = """
window.shown = [];
window.Notification = class { constructor(title, more) { window.shown.push([title, more.tag.slice(0, 9)]); } };
Notification.permission = "default";
Notification.requestPermission = async () => { Notification.permission = "granted"; };
"""


@requirement("approval:page:events")
def test_news_come_as_events_and_the_page_asks_only_while_they_do_not(site: Site, page: Page) -> None:
    asked = list[str]()

    def note(request: Request) -> None:
        asked.extend([request.url] if request.url.endswith("/review/state") else [])

    page.on("request", note)
    with site.serve("serve", "--port", "0", "--mode", "default") as server:
        sign_in(page, server)
        for name in "12":
            Agent(server, "create_file", path=name, content="x")
            expect(page.locator("article.question", has_text=f"create {name}")).to_be_visible()
        assert asked == []
        port = server.port
    expect(page.get_by_role("alert")).to_contain_text("Not connected since")
    assert asked

    with site.serve("serve", "--port", str(port), "--mode", "default") as server:  # the sign-in is still valid
        expect(page.get_by_role("alert")).to_be_hidden()
        Agent(server, "create_file", path="3", content="x")
        expect(page.locator("article.question", has_text="create 3")).to_be_visible()
        expect(page.locator("article.question")).to_have_count(1)


@requirement("approval:page:notify")
def test_a_question_is_notified_once_the_person_has_asked_for_it(server: HttpServer, browser: Browser) -> None:
    with browser.new_context() as person:
        page = person.new_page()
        page.set_default_timeout(WAIT_MILLISECONDS)
        page.add_init_script(_RECORD)
        sign_in(page, server)
        Agent(server, "create_file", path="1", content="x")
        expect(page.locator("article.question")).to_have_count(1)
        assert page.evaluate("shown") == []
        page.get_by_role("button", name="Notify me of questions").click()
        expect(page.get_by_role("button", name="Notify me of questions")).to_be_hidden()
        Agent(server, "create_file", path="2", content="x")
        expect(page.locator("article.question")).to_have_count(2)
        assert page.evaluate("shown") == [["raw-http wants to create 2", "question-"]]


def test_script_and_style_are_small() -> None:
    folder = files(ReviewPage.__module__.rpartition(".")[0])
    sizes = [len(folder.joinpath(name).read_bytes()) for name in ("page.js", "page.css")]
    assert sizes[0] <= 30_000
    assert sizes[1] <= 20_000
