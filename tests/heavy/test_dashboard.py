"""The dashboard in a real Chromium: drawn, live, usable by keyboard, readable at 400 px, safe with hostile names.

The pictures of README.md and docs/dashboard.md are made here: `PICTURES=docs/images make test-heavy
ARGS=tests/heavy/test_dashboard.py` writes them.
"""

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dashboard_example import entries, fill, fill_month, servers
from heavy.conftest import serving
from ullage.ledger import Entry
from ullage.store import Database
from upstreams import scripted, tool, write_toml

pytestmark = [pytest.mark.heavy, pytest.mark.requirement("U:dashboard")]

TOOLS = Path(__file__).parents[2] / ".bench" / "browser"
CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
USER = "ada"
VIEWS = ("overview", "sessions", "servers", "results", "models", "tools", "approvals", "health")
WIDTHS = (1440, 900, 400)
PICTURE_BYTES = 150_000
TRANSFERRED = 500_000

MARKUP = '<img src=x onerror="document.title=1"><script>document.title = 2</script><b>bold</b>'
HOSTILE = (
    MARKUP,
    "javascript:alert(1)",
    "x" * 5000,
    "\u202eevil\u202c \u05e9\u05dc\u05d5\u05dd \u0645\u0631\u062d\u0628\u0627",
    "tab\tnull-like\x01\x1b[31mred\x7f\u200b\u2028end",
    "{{7*7}} ${7*7} <%= 7 %>",
    "&lt;b&gt; &amp;",
    "__proto__",
)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    program = next((found for one in CHROMIUM if (found := shutil.which(one))), None)
    if program is None:
        pytest.skip("no Chromium is here; Debian has it: apt-get install chromium")
    packages = next(iter(TOOLS.glob("lib/python*/site-packages")), None)
    if packages is None:
        pytest.skip("playwright is not here; `make test-heavy` installs it")
    sys.path.append(str(packages))
    playwright_api = importlib.import_module("playwright.sync_api")
    with playwright_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=FLAGS)
        yield browser
        browser.close()


@dataclass
class Site:
    """A gateway that serves the dashboard, and its user's store."""

    url: str
    home: dict[str, str]
    folder: Path

    @contextmanager
    def database(self) -> Iterator[Database]:
        database = Database.open(f"sqlite:///{Path(self.home['XDG_DATA_HOME']) / 'ullage' / 'ullage.db'}")
        try:
            yield database
        finally:
            database.close()

    def link(self) -> str:
        command = [sys.executable, "-m", "ullage", "dashboard", "--json"]
        environment = {**os.environ, **self.home}
        end = time.monotonic() + 20
        while True:
            said = subprocess.run(
                command, env=environment, cwd=self.folder, capture_output=True, text=True, check=False
            )
            # A gateway says its address before the dashboard can be found.
            if said.returncode == 0 or time.monotonic() > end:
                assert said.returncode == 0, said.stderr
                return str(json.loads(said.stdout)["link"])
            time.sleep(0.2)


@contextmanager
def site_of(home: dict[str, str], folder: Path, **named: dict[str, Any]) -> Iterator[Site]:
    home = {**home, "LOGNAME": USER}
    settings = Path(home["XDG_CONFIG_HOME"]) / "ullage" / "ullage.toml"
    settings.parent.mkdir(parents=True)
    write_toml(settings, "", **named)
    (Path(home["XDG_DATA_HOME"]) / "ullage").mkdir(parents=True)
    command = [sys.executable, "-m", "ullage", "serve", "--http", "0", "--sample"]
    site = Site("", home, folder)
    with site.database():
        pass
    with serving(command, home, folder) as url:
        site.url = url.removesuffix("/mcp")
        yield site


@pytest.fixture
def site(home: dict[str, str], working_folder: Path) -> Iterator[Site]:
    """A month of use, and a project file that waits for approval."""
    (working_folder / "ullage.toml").write_text('[servers.strange]\ncommand = "true"\n', encoding="utf-8")
    with site_of(home, working_folder, **servers()) as site:
        with site.database() as database:
            fill_month(database, USER)
        yield site


@dataclass
class Watched:
    """A page with everything that it asked for and complained about."""

    page: Any
    context: Any
    problems: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    transferred: list[float] = field(default_factory=list)

    def show(self, site: Site, view: str) -> None:
        self.page.goto(f"{site.url}/#/{view}")
        until(self.page, "document.querySelector('main').getAttribute('aria-busy') === 'false'")
        self.page.wait_for_timeout(400)


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Watched]]:  # noqa: ANN401
    contexts: list[Any] = []

    def make(**options: Any) -> Watched:  # noqa: ANN401
        context = chromium.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        contexts.append(context)
        page = context.new_page()
        watched = Watched(page, context)
        page.on("console", lambda message: watched.problems.append(message.text) if message.type != "log" else None)
        page.on("pageerror", lambda error: watched.problems.append(str(error)))
        page.on("dialog", lambda dialog: (watched.problems.append(f"dialog {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: watched.requests.append(request.url))
        wire = context.new_cdp_session(page)
        wire.send("Network.enable")
        wire.on("Network.loadingFinished", lambda event: watched.transferred.append(event["encodedDataLength"]))
        return watched

    yield make
    for context in contexts:
        context.close()


def until(page: Any, expression: str, argument: object = None) -> None:  # noqa: ANN401
    """Wait for an expression. Playwright's own waiting evaluates text in the page, which the page's policy forbids."""
    end = time.monotonic() + 20
    while not page.evaluate(expression, argument):
        assert time.monotonic() < end, expression
        page.wait_for_timeout(50)


def signed_in(site: Site, watched: Watched) -> Watched:
    watched.page.goto(site.link())
    watched.page.wait_for_selector("main h1:not(:empty)")
    watched.page.wait_for_selector(".stats")
    watched.page.wait_for_timeout(600)
    return watched


def overflow(page: Any) -> list[str]:  # noqa: ANN401
    """Elements that reach beyond the window, and the page itself if it scrolls sideways."""
    return page.evaluate("""() => {
        const wide = document.documentElement.clientWidth;
        const found = document.documentElement.scrollWidth > wide ? ["the page"] : [];
        for (const one of document.querySelectorAll("main *, header *")) {
            const box = one.getBoundingClientRect();
            const isHidden = box.width <= 1 || one.closest(".hidden, thead, .uplot, .scroll") && wide > 680;
            if (!isHidden && !one.closest(".hidden, thead, .uplot") && box.right > wide + 1)
                found.push(`${one.tagName}.${one.className} ${Math.round(box.right)}`);
        }
        return found;
    }""")


INK = """(one) => {
    const { data } = one.getContext("2d").getImageData(0, 0, one.width, one.height);
    const colours = new Map();
    for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] < 200) continue;
        const key = `${data[at] >> 4},${data[at + 1] >> 4},${data[at + 2] >> 4}`;
        colours.set(key, (colours.get(key) ?? 0) + 1);
    }
    return [...colours.values()].reduce((all, one) => all + one, 0);
}"""

CONTRAST = """() => {
    const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (text) => {
        probe.clearRect(0, 0, 1, 1);
        probe.fillStyle = text;
        probe.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const light = ([r, g, b]) => {
        const [x, y, z] = [r, g, b].map((one) => one / 255).map((one) =>
            one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4);
        return 0.2126 * x + 0.7152 * y + 0.0722 * z;
    };
    const below = (one) => {
        let layers = [];
        for (let at = one; at; at = at.parentElement) layers.push(rgba(getComputedStyle(at).backgroundColor));
        let colour = [255, 255, 255];
        for (const [r, g, b, a] of layers.reverse())
            colour = [r, g, b].map((own, place) => own * a + colour[place] * (1 - a));
        return colour;
    };
    const found = [];
    const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (walk.nextNode()) {
        const one = walk.currentNode.parentElement;
        if (!walk.currentNode.textContent.trim() || !one.checkVisibility({ visibilityProperty: true })) continue;
        if (one.closest(".hidden, thead, noscript, .skip, script")) continue;
        const style = getComputedStyle(one);
        const [a, b] = [light(rgba(style.color)), light(below(one))].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5 || parseFloat(style.fontSize) < 11.5)
            found.push(`${ratio.toFixed(2)} ${style.fontSize} ${walk.currentNode.textContent.slice(0, 30)}`);
    }
    return found;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_view_is_drawn_in_both_schemes_at_every_width(site: Site, open_page: Callable[..., Watched], scheme: str):
    watched = signed_in(site, open_page(color_scheme=scheme))
    page = watched.page
    assert sum(watched.transferred) < TRANSFERRED, sum(watched.transferred)
    backgrounds = set()
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        for view in VIEWS:
            watched.show(site, view)
            assert page.inner_text("main h1")
            assert overflow(page) == [], (view, width)
            assert page.evaluate(CONTRAST) == [], (view, width)
            if view == "overview":
                inks = [canvas.evaluate(INK) for canvas in page.query_selector_all("canvas")]
                assert len(inks) == 2
                assert min(inks) > 3_000, inks
        watched.show(site, "sessions")
        page.click(".row-link >> nth=1")
        page.wait_for_selector("canvas")
        page.wait_for_timeout(300)
        assert page.query_selector("canvas").evaluate(INK) > 3_000
        assert overflow(page) == []
        backgrounds.add(page.evaluate("getComputedStyle(document.documentElement).backgroundColor"))
    (background,) = backgrounds
    assert (sum(map(int, background.strip("rgb()").split(","))) > 384) == (scheme == "light")
    assert watched.problems == []
    assert {url for url in watched.requests if not url.startswith(f"{site.url}/")} == set()
    assert not any("#" in url for url in watched.requests if "/static/" in url)


def test_the_toggle_overrides_the_system_and_is_kept(site: Site, open_page: Callable[..., Watched]):
    page = signed_in(site, open_page(color_scheme="dark")).page

    def paper() -> str:
        return page.evaluate("getComputedStyle(document.documentElement).backgroundColor")

    dark = paper()
    page.click("#theme")
    assert page.inner_text("#theme") == "Theme: Light"
    light = paper()
    assert light != dark
    page.reload()
    page.wait_for_selector(".stats")
    assert paper() == light
    page.click("#theme")
    page.click("#theme")
    assert paper() == dark
    page.emulate_media(color_scheme="light")
    assert paper() == light


def test_everything_can_be_reached_and_used_by_keyboard(site: Site, open_page: Callable[..., Watched]):
    watched = signed_in(site, open_page())
    page = watched.page

    def active() -> str:
        return page.evaluate("document.activeElement.innerText || document.activeElement.className || ''")

    def is_outlined() -> bool:
        return page.evaluate("""() => {
            const one = document.activeElement;
            const seen = one.type === "radio" ? one.nextElementSibling : one;
            return getComputedStyle(seen).outlineStyle !== "none";
        }""")

    page.keyboard.press("Tab")
    assert active() == "Skip to content"
    reached = list[str]()
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break
        reached.append(active())
        assert is_outlined(), active()
    for one in (*("Overview", "Sessions", "Trust", "Health"), "Theme: Auto", "Sign out", "plot", "Show as a table"):
        assert one in reached, reached
    page.focus(".periods input:checked")
    page.keyboard.press("ArrowLeft")
    until(page, "localStorage.getItem('ullage.days') === '7'")
    page.wait_for_timeout(800)
    assert page.evaluate("document.activeElement.value") == "7"
    page.focus(".plot")
    before = page.inner_text(".readout >> nth=0")
    page.keyboard.press("End")
    page.wait_for_timeout(200)
    assert page.inner_text(".readout >> nth=0") != before
    assert "tokens" in page.inner_text(".readout >> nth=0")
    page.keyboard.press("/")
    page.wait_for_selector("#query")
    page.keyboard.press("/")
    assert page.evaluate("document.activeElement.id") == "query"
    page.keyboard.type("list the issues")
    page.wait_for_selector(".ranked")
    assert page.evaluate("document.activeElement.id") == "query"
    assert page.input_value("#query") == "list the issues"
    assert "github__list_issues" in page.inner_text(".ranked li >> nth=0")
    page.focus(".ranked summary")
    page.keyboard.press("Enter")
    assert "in the name" in page.inner_text(".ranked li >> nth=0")
    assert watched.problems == []


def test_a_new_row_appears_by_itself_and_focus_stays(site: Site, open_page: Callable[..., Watched]):
    watched = signed_in(site, open_page())
    page = watched.page
    until(page, "document.getElementById('live').textContent === 'Live'")
    page.wait_for_timeout(3000)
    loaded = [url for url in watched.requests if url.endswith("app.js")]
    page.focus("details summary")
    page.keyboard.press("Enter")
    before = page.inner_text(".stats")
    with site.database() as database:
        fill(
            database,
            Entry(
                time=datetime.now(UTC), kind="result", principal=USER, session="now", server="github",
                tool="list_issues", tokens=1_000, baseline_tokens=9_001_000, saved_tokens=9_000_000, milliseconds=5.0,
            ),
        )  # fmt: skip
    until(page, "(before) => document.querySelector('.stats').innerText !== before", before)
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    assert page.query_selector("details[open]") is not None
    assert [url for url in watched.requests if url.endswith("app.js")] == loaded
    assert watched.problems == []


def test_dates_over_the_turn_of_a_year_have_the_year(
    home: dict[str, str], working_folder: Path, open_page: Callable[..., Watched]
):
    with site_of(home, working_folder) as site:
        now = datetime.now(UTC)
        with site.database() as database:
            fill(database, *entries(now, USER, days=400))
        watched = signed_in(site, open_page(viewport={"width": 400, "height": 900}))
        page = watched.page
        page.evaluate("localStorage.setItem('ullage.days', 'all')")
        page.reload()
        page.wait_for_selector(".readout")
        first, last = page.inner_text(".readout >> nth=0").split(" to ")
        assert first.split()[-1] in (str(now.year - 1), str(now.year - 2))
        assert last.split()[-1] == str(now.year)
        assert overflow(page) == []
        assert watched.problems == []


def test_sign_in_by_link_and_by_hand_and_sign_out(site: Site, open_page: Callable[..., Watched]):
    watched = open_page()
    page = watched.page
    link = site.link()
    page.goto(site.url)
    assert page.inner_text("h1") == "Sign in"
    page.fill("#code", "WRNG-CODE")
    page.keyboard.press("Enter")
    until(page, "document.getElementById('problem').textContent !== ''")
    assert "ullage dashboard" in page.inner_text("#problem")
    page.fill("#code", link.split("#")[1].lower().replace("-", ""))
    page.keyboard.press("Enter")
    page.wait_for_selector(".stats")
    (cookie,) = watched.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert page.evaluate("document.cookie") == ""
    page.click("#out")
    page.wait_for_selector("#code")
    page.goto("about:blank")
    page.goto(link)
    until(page, "document.getElementById('problem').textContent !== ''")
    assert link.split("#")[1] not in page.url
    # The refused codes, which the browser reports as such, and nothing else.
    assert all("401" in one for one in watched.problems), watched.problems
    assert not any(link.split("#")[1] in url for url in watched.requests if "#" not in url)


def hostile_entries() -> Iterator[Entry]:
    now = datetime.now(UTC) - timedelta(minutes=30)
    for number, text in enumerate(HOSTILE):
        about: dict[str, Any] = {"principal": USER, "session": text, "client": text, "project": f"/src/{text}"}
        yield Entry(
            time=now, kind="result", server=text, tool=text, tokens=10, baseline_tokens=500 + number,
            saved_tokens=490 + number, milliseconds=3.0, model=text, **about,
        )  # fmt: skip
        call = next(one for one in entries(now, USER, seed=number) if one.kind == "model")
        yield Entry(time=now, kind="model", model=text, tokens=call.tokens, use=call.use, server=text, **about)


def test_hostile_names_and_texts_are_shown_as_text(
    home: dict[str, str], working_folder: Path, open_page: Callable[..., Watched]
):
    offered = [tool(f"tool_{number}", text[:900], title=text) for number, text in enumerate(HOSTILE)]
    offered.append(tool(MARKUP, MARKUP))
    (working_folder / "ullage.toml").write_text(
        f"[servers.strange]\ncommand = {json.dumps(MARKUP)}\n", encoding="utf-8"
    )
    with site_of(home, working_folder, evil=scripted(*offered), dead={"command": MARKUP}) as site:
        with site.database() as database:
            fill(database, *hostile_entries())
        watched = signed_in(site, open_page(viewport={"width": 400, "height": 900}))
        page = watched.page
        for view in VIEWS:
            watched.show(site, view)
            text = page.inner_text("main")
            assert page.query_selector_all("main img, main script, main b, main iframe") == []
            assert overflow(page) == [], view
            assert page.title().endswith("· Ullage")
            assert not any(one in text for one in ("\x01", "\x1b", "\u202e", "\u200b", "\u2028")), view
            if view in ("overview", "sessions", "servers", "results", "models", "tools", "approvals"):
                assert "<img src=x onerror=" in text, view
        watched.show(site, "sessions")
        links = page.eval_on_selector_all(".row-link", "all => all.map((one) => one.getAttribute('href'))")
        assert len(links) == len(HOSTILE)
        for link in links:
            page.goto(f"{site.url}/{link}")
            page.wait_for_selector("canvas")
            page.wait_for_timeout(200)
            assert overflow(page) == []
            assert page.query_selector_all("main img, main script, main b") == []
        watched.show(site, "tools")
        page.fill("#query", MARKUP)
        page.wait_for_timeout(1500)
        assert page.query_selector_all("main img, main script, main b") == []
        assert watched.problems == []
        assert page.evaluate("document.title").endswith("· Ullage")


def test_an_empty_store_says_what_to_do(home: dict[str, str], working_folder: Path, open_page: Callable[..., Watched]):
    with site_of(home, working_folder) as site:
        watched = open_page()
        watched.page.goto(site.link())
        for view, hint in (
            ("overview", "ullage usage"),
            ("sessions", "ullage usage"),
            ("servers", "ullage scan"),
            ("results", "budget"),
            ("models", "ullage usage"),
            ("approvals", "ullage trust"),
        ):
            watched.page.wait_for_selector(".empty, .stats")
            watched.show(site, view)
            assert hint in watched.page.inner_text("main"), view
        assert watched.problems == []


def test_the_pictures_of_the_documentation_are_small(site: Site, open_page: Callable[..., Watched], tmp_path: Path):
    folder = Path(os.environ["PICTURES"]).resolve() if "PICTURES" in os.environ else tmp_path / "pictures"
    folder.mkdir(parents=True, exist_ok=True)
    page = signed_in(site, open_page(color_scheme="light", viewport={"width": 1280, "height": 800})).page
    until(page, "document.getElementById('live').textContent === 'Live'")
    page.screenshot(path=folder / "dashboard-overview.png")
    page.emulate_media(color_scheme="dark")
    page.goto(f"{site.url}/#/sessions")
    page.wait_for_selector(".row-link")
    compacted = False
    links = page.eval_on_selector_all(".row-link", "all => all.map((one) => one.getAttribute('href'))")
    for link in [one for one in links if "-c" in one and "stdio" not in one]:
        page.goto(f"{site.url}/{link}")
        page.wait_for_selector("canvas")
        page.wait_for_timeout(300)
        text = page.inner_text("main")
        compacted = "fell by half" in text and "(inferred)" in text
        if compacted:
            break
    assert compacted
    page.screenshot(path=folder / "dashboard-session.png")
    page.emulate_media(color_scheme="light")
    page.goto(f"{site.url}/#/tools")
    page.fill("#query", "show the log of a pod")
    page.wait_for_selector(".ranked")
    page.wait_for_timeout(800)
    page.click(".ranked summary >> nth=0")
    page.screenshot(path=folder / "dashboard-tools.png")
    page.set_viewport_size({"width": 400, "height": 860})
    page.goto(f"{site.url}/#/servers")
    page.wait_for_selector(".stats")
    page.wait_for_timeout(600)
    page.screenshot(path=folder / "dashboard-narrow.png")
    sizes = {path.name: path.stat().st_size for path in folder.glob("dashboard-*.png")}
    assert len(sizes) == 4
    assert max(sizes.values()) < PICTURE_BYTES, sizes
