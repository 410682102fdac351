"""The app in a real Chromium beside F1, the smallest app with a slider and a picture (``f1.py``).

F1 and the app are servers of their own; F1 and each setting of the overview have a window of their own, and in each
round every window is stepped once, so that what slows the machine slows both sides of a ratio. Two kinds of steps,
always in turn:

- view: the slider "Focus head", one to the right, or to the left. Another picture of a calculation that is known.
- calculation: the seed, one up. A calculation that the server has not done before.

So no picture is ever the same as one before it: Streamlit would send only its hash.

A step's time begins when the page receives ``keydown``, before any of its handlers. From then on the page looks, once
an animation frame, at what Plotly has drawn: the addresses of the ``<image>`` elements of the chart. A chart is mounted
anew when it changes: for some frames there is none, then there is one with another address. An image trace's address is
set when all other traces are drawn and its own picture is decoded; a heatmap's while it is drawn. The image is decoded
(``decode()``), two more animation frames pass, so that the browser has painted it, and the time ends.

A step is over when the script has ended and the server has been idle for a moment: then its CPU time is read from the
process's clock (user and system time of all its threads, also of those that have ended; less what the server spends
anyway in such a time, measured before the rounds), and the websocket's messages to the page are counted: their
payloads, and how often the script ran.
"""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean, median
from urllib.parse import urlencode

import numpy as np
from playwright.sync_api import Browser, BrowserContext, Page, WebSocket, sync_playwright
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from tests.bench.core import spread
from tests.browser.serve import FLAGS, chromium_path, serve

REPEATS = 20
COLD_STARTS = 3
WARM_UP = 2
IDLE_SECONDS = 2
SECONDS = 210
"""No round begins later than this after the start."""

F1_SCRIPT = Path(__file__).with_name("f1.py")
TEXT = """when we were young my sister often walked along this quiet river with an old yellow dog that never barked but
always carried some wet stick home so mother had no choice other than laughing out loud at both of them"""


def first_words(n: int) -> str:
    """n words, all different."""
    return " ".join(TEXT.split()[:n])


SMALL = {"h": 8, "d_model": 64, "input": "text", "text": first_words(16)}
WIDE = {"h": 16, "d_model": 512, "input": "text", "text": first_words(40)}
LONG = {"h": 8, "d_model": 64, "input": "random", "n": 256}
SETTINGS: dict[str, tuple[str, dict[str, object]]] = {
    "overview, h 8, n 16, d_model 64": ("", SMALL),
    "overview, h 16, n 40, d_model 512": ("", WIDE),
    "overview, h 8, n 256, d_model 64": ("", LONG),
    "project, h 8, n 16, d_model 64": ("project", {**SMALL, "weights": "random"}),  # designed Q knows no seed
    "attend, h 8, n 16, d_model 64": ("attend", SMALL),
    "combine, h 8, n 16, d_model 64": ("combine", SMALL),
    "heads, task copy": ("heads", {}),
    "scale, h 8, n 16, d_model 64": ("scale", SMALL),
    "order, h 8, n 16, d_model 64": ("order", {**SMALL, "weights": "random", "order_case": 1}),
    "cost, h 8, n 16, d_model 64": ("cost", SMALL),
    "faithfulness, h 8, n 16, d_model 64": ("faithfulness", {**SMALL, "slide": 40}),
}
SLIDERS = {
    "scale": "d_k of the random queries",
    "cost": "n",
    "faithfulness": "Slide the weights towards others with the same output",
}
"""Pages whose first picture another slider moves: only that step there, four times up, four times down."""
PILLS = {"heads": ("[aria-label='Heads on'] button", 4, 1)}
"""Pages stepped by pressing so many buttons in turn, and which of their pictures that changes, from 0."""
FIRST = next(iter(SETTINGS))
AIMED = [name for name in SETTINGS if name.endswith("h 8, n 16, d_model 64")]
AIM_F1, AIM_KB, AIM_CPU, AIM_RSS = 3.0, 120.0, 15.0, 350.0
"""At the small setting at most so many times F1, at the first so many kB; ms of CPU a rerun, MB of memory anywhere."""

WATCH = """
window.bench = (() => {
  const images = document.getElementsByTagName("image")  // live, so that a look is cheap
  const within = (image, layer) => image.closest(`.js-plotly-plot [class*=${layer}]`)  // with a hatch, imagelayer2
  const layer = name => [...images].filter(image => within(image, name))[self.watched ?? 0]
  const drawn = () => layer("imagelayer") ?? layer("heatmaplayer")
  const address = image => image.getAttribute("href") ?? image.getAttributeNS("http://www.w3.org/1999/xlink", "href")
  const frame = () => new Promise(requestAnimationFrame)
  let before = "", start = 0, painted
  async function watch() {
    for (const began = performance.now(); performance.now() < began + 45000; await frame()) {
      const image = drawn()
      const now = image && address(image)
      if (!now || now === before) continue
      await image.decode()
      await frame()
      await frame()
      return performance.now()
    }
    const errors = document.querySelectorAll("[data-testid=stException], [data-testid=stAlertContentError]")
    throw new Error(["no new picture within 45 s", ...[...errors].map(error => error.innerText)].join("; "))
  }
  return {
    first: async () => performance.timeOrigin + await watch(),
    arm: () => {
      before = address(drawn())
      addEventListener("keydown", () => { start = performance.now() }, {capture: true, once: true})
      painted = watch()
    },
    painted: async () => await painted - start,
  }
})()
"""


@dataclass
class Steps:
    """What one kind of step in one window cost, a number a round."""

    milliseconds: list[float] = field(default_factory=list)
    bytes: list[int] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)
    reruns: list[int] = field(default_factory=list)


class Window:
    """A page in a browser window of its own, and the server behind it."""

    def __init__(self, browser: Browser, address: str, pid: int) -> None:
        self.pid = pid
        self.idle = 0.0  # share of a core
        self.messages: list[bytes] = []
        self.steps: dict[str, Steps] = {}
        self.context = context(browser)
        self.page: Page = self.context.new_page()
        self.page.on("websocket", self._listen)
        self.page.goto(address)
        self.page.evaluate("bench.first()")
        self._settle()

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", lambda payload: self.messages.append(payload))

    def _settle(self) -> None:
        self.page.wait_for_selector("[data-testid=stApp][data-test-script-state=notRunning]", timeout=20_000)
        self.page.wait_for_timeout(80)  # what the server does after a run

    def step(self, name: str, selector: str, key: str, *, counted: bool) -> None:
        """Press a key in a widget and wait for the picture."""
        self.page.bring_to_front()
        self.page.locator(selector).focus()
        self.page.evaluate("bench.arm()")
        self.messages.clear()
        began, before = time.perf_counter(), cpu_milliseconds(self.pid)
        self.page.keyboard.press(key)
        milliseconds = self.page.evaluate("bench.painted()")
        self._settle()
        cpu = cpu_milliseconds(self.pid) - before - self.idle * (time.perf_counter() - began) * 1e3
        if not counted:
            return
        row = self.steps.setdefault(name, Steps())
        row.milliseconds.append(milliseconds)
        row.bytes.append(sum(map(len, self.messages)))
        row.cpu.append(cpu)
        row.reruns.append(sum(ForwardMsg.FromString(m).WhichOneof("type") == "new_session" for m in self.messages))


def context(browser: Browser) -> BrowserContext:
    new = browser.new_context(viewport={"width": 1440, "height": 900}, locale="en-US")
    new.add_init_script(WATCH)
    return new


def measure_idle(windows: list[Window]) -> None:
    """What the servers spend while nobody does anything: Streamlit's wakes ten times a second."""
    before = [cpu_milliseconds(window.pid) for window in windows]
    time.sleep(IDLE_SECONDS)
    for window, milliseconds in zip(windows, before, strict=True):
        window.idle = (cpu_milliseconds(window.pid) - milliseconds) / (IDLE_SECONDS * 1e3)


def cpu_milliseconds(pid: int) -> float:
    """utime + stime of /proc/<pid>/stat, from the clock that Linux has for each process, in nanoseconds."""
    return time.clock_gettime_ns((~pid << 3) | 2) / 1e6


def resident_megabytes(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert found
    return int(found[1]) * 1024 / 1e6


def main(repeats: int = REPEATS) -> None:
    """Print everything, in under four minutes. Linux only, for its /proc."""
    latest = time.monotonic() + SECONDS
    if (path := chromium_path()) is None:
        sys.exit("no Chromium at /usr/bin/chromium, on the PATH or in $CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        machine, load = facts(browser), os.getloadavg()[0]
        print("\n".join(machine))
        cold = cold_starts(browser)
        with serve(F1_SCRIPT) as (f1_address, f1_server), serve() as (app_address, app_server):
            f1 = Window(browser, f1_address, f1_server.pid)
            overviews = {
                name: Window(browser, f"{app_address}/{page}?{urlencode(query)}", app_server.pid)
                for name, (page, query) in SETTINGS.items()
            }
            measure_idle([f1, *overviews.values()])
            rounds(f1, overviews, repeats, latest)
            resident = {"F1": resident_megabytes(f1_server.pid), "overview": resident_megabytes(app_server.pid)}
            for window in (f1, *overviews.values()):
                window.context.close()
        browser.close()
    machine.append(f"load {load:.1f} before the run, {os.getloadavg()[0]:.1f} at its end")
    print(machine[-1])
    unit, steps = f1.steps["view"], {name: window.steps for name, window in overviews.items()}
    print_steps(unit, steps)
    print_servers(resident, cold)
    print("\nThe same for a README:\n")
    print_markdown(machine, unit, steps, resident, cold)


def rounds(f1: Window, overviews: dict[str, Window], repeats: int, latest: float) -> None:
    """Every window stepped once a round, up to a time; who comes first changes from round to round."""

    def step_f1(number: int) -> None:
        f1.step("view", "input[type=range][aria-label=step]", "ArrowRight", counted=number >= 0)

    def stepper(name: str, window: Window) -> Callable[[int], None]:
        page, counted = SETTINGS[name][0], lambda number: number >= 0
        if page in PILLS:
            buttons, count, watched = PILLS[page]
            window.page.evaluate("index => { self.watched = index }", watched)
            return lambda number: window.step(
                "view", f"{buttons} >> nth={number % count}", "Space", counted=counted(number)
            )

        def step(number: int) -> None:
            slider, period = (SLIDERS[page], 8) if page in SLIDERS else ("Focus head", 2)
            key = "ArrowRight" if number % period < period // 2 else "ArrowLeft"
            window.step("view", f"input[type=range][aria-label='{slider}']", key, counted=counted(number))
            if page not in SLIDERS:
                window.step("calculation", "input[type=number][aria-label=Seed]", "ArrowUp", counted=counted(number))

        return step

    order = [step_f1, *(stepper(name, window) for name, window in overviews.items())]
    for number in range(-WARM_UP, repeats):
        if time.monotonic() > latest:
            print(f"stopped after {number} of {repeats} rounds: the machine is busy, {SECONDS} s are over")
            break
        order = order[1:] + order[:1]
        for step in order:
            step(number)


def cold_starts(browser: Browser) -> dict[str, list[float]]:
    """Seconds from the start of a server's process to the first picture in a fresh context."""
    seconds: dict[str, list[float]] = {"F1": [], "overview": []}
    for _ in range(COLD_STARTS):
        for name, script in (("F1", F1_SCRIPT), ("overview", "app.py")):
            start = time.time()
            with serve(script) as (address, _):
                fresh = context(browser)
                page = fresh.new_page()
                page.goto(address)
                seconds[name].append(page.evaluate("bench.first()") / 1e3 - start)
                fresh.close()
    return seconds


def facts(browser: Browser) -> list[str]:
    """The machine and the versions."""
    model = re.search(r"model name\s*: (.+)", Path("/proc/cpuinfo").read_text())
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in ("streamlit", "plotly", "torch"))
    return [
        f"{os.cpu_count()} cores of {model[1] if model else platform.machine()}",
        f"Python {platform.python_version()}, {versions}, Chromium {browser.version}, headless, 1440×900",
    ]


def verdict(value: float, aim: float) -> str:
    return f"{'met' if value <= aim else 'MISSED'} (≤ {aim:g})"


def ratios(row: Steps, f1: Steps) -> np.ndarray:
    """Times F1, round by round."""
    return np.array(row.milliseconds) / np.array(f1.milliseconds)


def cpu_a_rerun(row: Steps) -> float:
    return sum(row.cpu) / sum(row.reruns)


def print_steps(f1: Steps, overviews: dict[str, dict[str, Steps]]) -> None:
    """A paragraph a window, a figure a line, each beside its aim."""
    print(f"\n{len(f1.milliseconds)} rounds. Times: p50 (p10 … p90)")
    for name, steps in {"F1": {"view": f1}, **overviews}.items():
        print(f"\n{name}")
        for kind, row in steps.items():
            first = name == FIRST
            of_f1, kilobytes, cpu = ratios(row, f1), median(row.bytes) / 1e3, cpu_a_rerun(row)
            p95 = np.percentile(row.milliseconds, 95)
            print(f"  {kind} step")
            print(f"    key to picture  {spread(np.array(row.milliseconds), 0)} ms, p95 {p95:.0f} ms")
            if row is not f1:
                of_p50s = median(row.milliseconds) / median(f1.milliseconds)
                aim = verdict(float(np.median(of_f1)), AIM_F1) if name in AIMED else ""
                print(f"    × F1            {spread(of_f1, 2)} in pairs, {of_p50s:.2f} of the p50s  {aim}")
            print(f"    websocket       {kilobytes:.1f} kB  {verdict(kilobytes, AIM_KB) if first else ''}")
            aim = "" if row is f1 else verdict(cpu, AIM_CPU)
            print(f"    server CPU      {cpu:.1f} ms a rerun, {mean(row.reruns):.2f} reruns a step  {aim}")


def print_servers(resident: dict[str, float], cold: dict[str, list[float]]) -> None:
    print("\nservers")
    for name, megabytes in resident.items():
        aim = verdict(megabytes, AIM_RSS) if name == "overview" else ""
        print(f"  {name:8} {megabytes:.0f} MB resident after the run  {aim}")
    for name, seconds in cold.items():
        each = ", ".join(f"{second:.2f}" for second in seconds)
        print(f"  {name:8} {median(seconds):.2f} s from the server's start to the first picture, cold ({each})")


def print_markdown(
    machine: list[str],
    f1: Steps,
    overviews: dict[str, dict[str, Steps]],
    resident: dict[str, float],
    cold: dict[str, list[float]],
) -> None:
    print("| page and setting | step | key to picture: p50, p95 | × F1 | websocket | server CPU a rerun |")
    print("|---|---|---|---|---|---|")
    for name, steps in {"F1": {"view": f1}, **overviews}.items():
        for kind, row in steps.items():
            p50, p95 = np.percentile(row.milliseconds, [50, 95])
            of_f1 = np.median(ratios(row, f1))
            size, cpu = median(row.bytes) / 1e3, cpu_a_rerun(row)
            print(f"| {name} | {kind} | {p50:.0f} ms, {p95:.0f} ms | {of_f1:.2f} | {size:.0f} kB | {cpu:.0f} ms |")
    app, bare = (f"{resident[name]:.0f} MB, {median(cold[name]):.1f} s" for name in ("overview", "F1"))
    print(f"\nServer, resident after the run, and from its start to the first picture: {app}; F1: {bare}.")
    print(f"{'; '.join(machine)}.")
