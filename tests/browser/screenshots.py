"""README's pictures, taken anew: ``python -m tests.browser.screenshots``."""

from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.serve import FLAGS, ROOT, chromium_path, serve

FOLDER = ROOT / ".readme"
SHOTS = {
    "overview.png": "/",
    "overview_zh.png": "/?lang=zh&input=mao&h=8&mask=causal&head=1",
    "heads.png": "/heads",
}


def main() -> None:
    """Start the app, open each address at 1440×900, save what is seen."""
    FOLDER.mkdir(exist_ok=True)
    with serve() as (address, _), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900}, locale="en-US")
        for name, query in SHOTS.items():
            page.goto(address + query)
            page.wait_for_selector(".js-plotly-plot .main-svg")
            page.wait_for_timeout(1500)
            page.screenshot(path=FOLDER / name)
            print(Path(FOLDER / name).relative_to(ROOT))
        browser.close()


if __name__ == "__main__":
    main()
