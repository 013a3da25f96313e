"""Take the screenshots of README: the playground during a game, the dashboard, and a report.

    python tools/screenshots.py

It needs Chromium. Simulated people use the service meanwhile, so the screenshots vary a little.
"""

import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

PORT = 8765
ADDRESS = f"http://127.0.0.1:{PORT}"
FIGURES = Path(__file__).parents[1] / "docs" / "figures"


def main() -> None:
    """Serve the demo, visit both pages, and save their screenshots."""
    command = [sys.executable, "-c", "from counsel.cli import main; main()", "serve", "--demo"]
    service = subprocess.Popen([*command, "--port", str(PORT)], stdout=subprocess.DEVNULL)
    try:
        time.sleep(45.0)  # until there are decisions to show
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            page = browser.new_page(viewport={"width": 1280, "height": 800})
            page.add_init_script("localStorage.setItem('counsel-play-welcomed', 'true')")
            play(page)
            page.screenshot(path=FIGURES / "playground.png")
            page.goto(ADDRESS)
            page.locator("#recent-decisions, [id^=recent]").first.wait_for()
            time.sleep(1.0)
            page.screenshot(path=FIGURES / "dashboard.png")
            report(browser.new_page(viewport={"width": 1000, "height": 1500}))
            browser.close()
    finally:
        service.terminate()
        service.wait()


def report(page: Page) -> None:
    """Write the report of the example log, and save the top of it."""
    with tempfile.TemporaryDirectory() as folder:
        for words in ("demo-log -o ward.csv", "report ward.csv --budget 1 -o report.html"):
            command = [sys.executable, "-c", "from counsel.cli import main; main()", *words.split()]
            subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        page.goto((Path(folder) / "report.html").as_uri())
        page.locator(".js-plotly-plot").first.wait_for()
        page.screenshot(path=FIGURES / "report.png")


def play(page: Page) -> None:
    """Play two games, and a third until the machine advises in the middle of it."""
    page.goto(f"{ADDRESS}/play")
    page.locator("#settings [name=adviser]").select_option("penalty")
    for game in range(3):
        page.locator("#stage[aria-busy=false]").wait_for(timeout=120_000)
        for step in range(19):
            is_advised = page.locator("#moves .advised").count() > 0
            if game == 2 and step >= 6 and is_advised:
                return
            before = page.locator("#moves-made").inner_text()
            if is_advised and step % 4 != 3:
                page.locator("#moves .advised").first.click()
            else:
                page.keyboard.press(("ArrowUp", "ArrowDown")[step % 2])
            page.wait_for_function(
                "before => document.getElementById('moves-made').innerText !== before", arg=before
            )
            if page.locator("#card").is_visible():
                break
        page.locator("#new-game").click()


if __name__ == "__main__":
    main()
