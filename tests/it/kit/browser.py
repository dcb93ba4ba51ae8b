"""Drives a headless Chromium, and reads what the operators' page shows."""

import shutil
import tempfile
from types import SimpleNamespace

import pytest
from kit.admin import url_of
from kit.harness import wait_until

FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --disable-dev-shm-usage --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync --disable-extensions"
).split()


class Browser:
    def __init__(self):
        webdriver = pytest.importorskip("selenium.webdriver")
        service = pytest.importorskip("selenium.webdriver.chrome.service")
        programs = {name: shutil.which(name) for name in ("chromium", "chromedriver")}
        for name, path in programs.items():
            if not path:
                pytest.skip(f"{name} is not installed")
        self.folder = tempfile.mkdtemp(prefix="weir-it-browser-")
        options = webdriver.ChromeOptions()
        options.binary_location = programs["chromium"]
        for flag in [*FLAGS, f"--user-data-dir={self.folder}"]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=service.Service(programs["chromedriver"]), options=options)
        self.driver.set_page_load_timeout(60)
        self.driver.set_script_timeout(60)

    def close(self):
        self.driver.quit()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tell(self, method, **arguments):
        """Sends a command of the DevTools protocol."""
        return self.driver.execute_cdp_cmd(method, arguments)

    def open(self, url, *, script=True, scheme="light", width=1280, height=900):
        self.tell("Emulation.setScriptExecutionDisabled", value=not script)
        self.tell("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.tell(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        self.driver.get(url)

    def leave(self):
        """Closes the page and forgets its complaints: the page's weir may have stopped while the
        page was open.
        """
        self.driver.get("about:blank")
        self.complaints()

    def run(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def text(self, selector):
        """Returns the text of the first element that matches the selector; None if no element
        matches.
        """
        return self.run("return document.querySelector(arguments[0])?.textContent", selector)

    def wait(self, script, what, *arguments):
        return wait_until(lambda: self.run("return " + script, *arguments), what, 30)

    def complaints(self):
        """Returns what was written to the console since the last call, including violations of the
        security policy.
        """
        return [entry["message"] for entry in self.driver.get_log("browser")]


SHOWN = """
const every = (selector) => [...document.querySelectorAll(selector)];
const texts = (row) => [...row.cells].map((cell) => cell.textContent);
return {
  title: document.title,
  findings: every('#findings li').map((item) => item.textContent).join('\\n'),
  fields: Object.fromEntries(every('[data-f]').map((node) => [node.dataset.f, node.textContent])),
  tables: Object.fromEntries(every('table').map((table) => [table.id, [...table.rows].map(texts)])),
  states: every('#limits tbody tr').map((row) => row.className),
  hidden: every('[hidden]').map((node) => node.id),
};
"""


def page_of(browser, weir):
    """Waits until the page is live, and returns what it shows.

        title     its title
        findings  one text
        fields    by their data-f
        tables    by their id: lists of rows, the head first
        states    of the limits
        hidden    the ids of hidden elements
    """
    browser.open(url_of(weir, "/"))
    browser.wait("document.querySelector('[data-f=live]').textContent === 'live'", "the page is live")
    return SimpleNamespace(**browser.run(SHOWN))
