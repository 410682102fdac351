"""One server and one Chromium for all browser tests. In CI a missing browser is an error."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import parse_qsl

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from pages._ui.settings import unpack
from tests.browser.serve import FLAGS, chromium_path, serve

# Streamlit's own: it asks for these below a page's path first, and finds them at the root
KNOWN_404 = ("/_stcore/health", "/_stcore/host-config")

IDLE = """async () => {
    while (document.querySelector('[data-testid=stApp]')?.dataset.testScriptState !== 'notRunning')
        await new Promise(done => setTimeout(done, 20));
    for (let i = 0; i < 3; i++)
        await new Promise(done => requestIdleCallback(() => requestAnimationFrame(done)));
}"""

runs: Counter[Page] = Counter()
"""How often the app has run to its end in each page."""


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    with serve() as (address, _):
        yield address


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    path = chromium_path()
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("no Chromium: CI needs one at /usr/bin/chromium or in $CHROMIUM")
        pytest.skip("no Chromium at /usr/bin/chromium, on the PATH or in $CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


class Visit(list[str]):
    """What went wrong while a page was open: console errors, dialogs and requests to elsewhere."""

    def __init__(self, page: Page, address: str) -> None:
        page.on("console", lambda message: message.type == "error" and self._console(message.text, message.location))
        page.on("pageerror", lambda error: self.append(f"error: {error}"))
        page.on("request", lambda request: self._request(request.url, address))
        page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: self._received(page, frame)))
        page.on("dialog", lambda dialog: (self.append(f"dialog: {dialog.message}"), dialog.dismiss()))

    def _console(self, text: str, location: dict[str, object]) -> None:
        if not ("404" in text and str(location.get("url", "")).endswith(KNOWN_404)):
            self.append(f"console: {text}")

    def _request(self, url: str, address: str) -> None:
        if not url.startswith((address, address.replace("http", "ws"), "data:", "blob:")):
            self.append(f"request: {url}")

    def _received(self, page: Page, frame: str | bytes) -> None:
        message = ForwardMsg.FromString(frame) if isinstance(frame, bytes) else ForwardMsg()
        if message.WhichOneof("type") == "script_finished" and message.script_finished == message.FINISHED_SUCCESSFULLY:
            runs[page] += 1


@contextmanager
def window(browser: Browser, address: str) -> Iterator[BrowserContext]:
    """A browser that has never been here: 1440×900, English."""
    context = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US", base_url=address)
    context.set_default_timeout(30_000)
    context.add_init_script("localStorage.clear()")  # Streamlit keeps there whether the sidebar is open
    yield context
    context.close()


@pytest.fixture(scope="session")
def context(browser: Browser, address: str) -> Iterator[BrowserContext]:
    with window(browser, address) as context:
        yield context


@contextmanager
def visit(context: BrowserContext, address: str) -> Iterator[Page]:
    """A fresh session; fails on console errors, dialogs and requests to elsewhere."""
    page = context.new_page()
    problems = Visit(page, address)
    yield page
    page.close()
    assert not problems


@pytest.fixture
def page(context: BrowserContext, address: str) -> Iterator[Page]:
    """A fresh session at 1440×900; the browser keeps Streamlit's scripts from test to test."""
    with visit(context, address) as page:
        yield page


def settle(page: Page) -> None:
    """Wait until the app has run and its picture is drawn."""
    page.wait_for_selector(".js-plotly-plot .main-svg", timeout=20_000)
    idle(page)


def idle(page: Page) -> None:
    """Wait until the app has run, whether or not there is a picture."""
    page.wait_for_selector("[data-testid=stApp] [data-testid=stHeading]")
    page.evaluate(IDLE)


@contextmanager
def rerun(page: Page) -> Iterator[None]:
    """Wait for the run that what is done inside asks for."""
    before, deadline = runs[page], time.monotonic() + 30
    yield
    while runs[page] == before:
        assert time.monotonic() < deadline, "the app did not run again"
        page.wait_for_timeout(20)
    page.evaluate(IDLE)


def slide(page: Page, label: str, key: str = "ArrowRight", times: int = 1) -> None:
    """Move a slider by keyboard and wait for the run that follows."""
    for _ in range(times):
        with rerun(page):
            page.locator(f"input[type=range][aria-label='{label}']").press(key)
    settle(page)


def pick(page: Page, label: str, option: str) -> None:
    """Choose from a list."""
    page.get_by_role("combobox", name=label, exact=True).click()
    with rerun(page):
        page.get_by_role("option", name=option, exact=True).click()


def enter(page: Page, label: str, number: int) -> None:
    """Type a number."""
    page.get_by_role("spinbutton", name=label, exact=True).fill(str(number))
    with rerun(page):
        page.keyboard.press("Enter")


def write(page: Page, text: str) -> None:
    """Type one's own text."""
    page.locator("textarea").fill(text)
    with rerun(page):
        page.keyboard.press("Control+Enter")


def upload(page: Page, name: str, data: bytes) -> None:
    """Upload a file as X."""
    with rerun(page):
        page.locator("input[type=file]").set_input_files({"name": name, "mimeType": "text/csv", "buffer": data})


def query(page: Page) -> dict[str, str]:
    """The settings in the address (``page.url`` lags behind)."""
    return unpack(dict(parse_qsl(page.evaluate("location.search")[1:])))


def drawn(page: Page) -> str:
    """Every number that is drawn."""
    return page.evaluate(
        "JSON.stringify(document.querySelector('.js-plotly-plot').data.filter(t => t.type == 'heatmap').map(t => t.z))"
    )


def shown(page: Page) -> dict[str, str]:
    """What every visible control says, by its label."""
    return page.evaluate(
        """Object.fromEntries(
            [...document.querySelectorAll('[data-testid=stSidebar] :is(input, textarea, [role=radio])')].map(e => [
                e.ariaLabel ?? e.innerText,
                e.role === 'radio' ? e.ariaChecked
                    : e.type === 'checkbox' ? String(e.checked) : e.getAttribute('aria-valuetext') ?? e.value,
            ])
        )"""
    )
