"""The operators' page in a real browser: it lives, it keeps what clients say as text, and all of it can be used."""

import base64
import threading

import pytest
from kit.admin import ADMIN, get, stats, url_of
from kit.browser import Browser
from kit.harness import REPO, wait_until

EVIL = "<script>alert(1)</script>"
LIMITS = """
[policy evil]
match = name:<*
cmd.get = 5/s
[policy default]
cmd.set = 30/m
cmd.incr = 1/m over shadow
read = 100000/s per policy
"""
ROWS = "[...document.querySelectorAll('#limits tbody tr')].map((row) => row.cells[0].firstChild.textContent)"


@pytest.fixture(scope="module")
def browser():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def weir(shared_farm, shared_redis):
    return shared_farm.weir(shared_redis, sections=LIMITS + ADMIN, identity="name, ip")


@pytest.fixture
def load(weir):
    """Somebody who is refused, and somebody with an evil name, until the test ends."""
    is_over = threading.Event()

    def run():
        with weir.connect() as evil, weir.connect() as plain:
            evil.call("CLIENT", "SETNAME", EVIL)
            while not is_over.wait(0.02):
                evil.ask(*["GET x"] * 20)
                plain.ask(*["GET x"] * 20, "SET a 1", "INCR n")

    thread = threading.Thread(target=run)
    thread.start()
    yield
    is_over.set()
    thread.join()


def open_page(browser, weir, **how):
    browser.complaints()
    browser.open(url_of(weir, "/"), **how)


def wait_live(browser):
    browser.wait("document.querySelector('[data-f=live]').textContent === 'live'", "the page is live")


def press(browser, *keys):
    codes = {"Tab": 9, "Enter": 13, " ": 32}
    for key in keys:
        for kind in ("keyDown", "keyUp"):
            text = {"Enter": "\r", " ": " "}.get(key) if kind == "keyDown" else None
            event = {"type": kind, "key": key, "windowsVirtualKeyCode": codes[key]}
            browser.tell("Input.dispatchKeyEvent", **event, **({"text": text} if text else {}))


def shoot(browser, name):
    folder = REPO / "build" / "page"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.png").write_bytes(base64.b64decode(browser.tell("Page.captureScreenshot")["data"]))


def test_numbers_move_and_names_stay_text(browser, weir, load):
    open_page(browser, weir)
    wait_live(browser)
    assert browser.run("return " + ROWS) == ["evil/cmd.get", "default/cmd.set", "default/cmd.incr", "default/read"]
    read = "Number(document.querySelector('[data-key=\"default/read\"] td:nth-child(6)').textContent.replaceAll(',', ''))"
    before = browser.run("return " + read)
    browser.wait(f"{read} > arguments[0]", "admitted commands are counted", before)
    browser.wait("document.querySelector('[data-f=commands]').textContent !== '0'", "a rate of commands")
    browser.wait("document.querySelector('#chart-commands .line').getAttribute('d').length > 30", "a line of points")
    browser.wait("document.querySelector('[data-key=\"evil/cmd.get\"]').className === 'refusing'", "it refuses")
    browser.wait("document.querySelector('[data-key=\"default/cmd.incr\"]').className === 'shadowing'", "only counted")
    browser.wait("document.querySelector('#events tbody').textContent.includes('begins to refuse')", "an event")

    for table in ("top-commands", "top-refused"):
        names = f"[...document.querySelectorAll('#{table} tbody th')].map((cell) => cell.textContent)"
        browser.wait(f"{names}.includes(arguments[0])", "the evil name", "name:" + EVIL)
    browser.wait(
        "document.querySelector('[data-key=\"evil/cmd.get\"] bdi').textContent === arguments[0]", "it is the fullest",
        "name:" + EVIL,
    )
    assert browser.run("return document.scripts.length") == 1
    shoot(browser, "light")
    assert browser.complaints() == []


def test_pause_filter_and_order(browser, weir, load):
    open_page(browser, weir)
    wait_live(browser)
    browser.run("document.getElementById('pause').click()")
    assert browser.text("#pause") == "Resume" and browser.text("[data-f=live]").startswith("paused at ")
    shown = browser.text("[data-f=uptime]")
    uptime = stats(weir)["uptime_seconds"]
    wait_until(lambda: stats(weir)["uptime_seconds"] > uptime + 3, "time passes")
    assert browser.text("[data-f=uptime]") == shown
    browser.run("document.getElementById('pause').click()")
    browser.wait("document.querySelector('[data-f=uptime]').textContent !== arguments[0]", "it goes on", shown)

    filter_for = "const f = document.getElementById('filter'); f.value = arguments[0]; f.dispatchEvent(new Event('input'))"
    browser.run(filter_for, "CMD default")
    assert browser.run("return " + ROWS) == ["default/cmd.set", "default/cmd.incr"]
    browser.run(filter_for, "no such thing")
    assert browser.text("#limits tbody") == "Nothing here matches the filter."
    browser.run(filter_for, "")
    assert len(browser.run("return " + ROWS)) == 4

    browser.run("document.querySelector('#limits th button').click()")
    assert browser.run("return " + ROWS) == ["default/cmd.incr", "default/cmd.set", "default/read", "evil/cmd.get"]
    assert browser.run("return document.querySelector('#limits th').ariaSort") == "ascending"
    browser.run("document.querySelector('#limits th button').click()")
    assert browser.run("return " + ROWS)[0] == "evil/cmd.get"
    browser.run("document.querySelector('#limits th button').click()")
    assert browser.run("return document.querySelector('#limits th').ariaSort") is None
    assert browser.complaints() == []


def test_the_keyboard_reaches_everything_and_shows_where_it_is(browser, weir):
    open_page(browser, weir)
    wait_live(browser)
    passed = []
    focus = "const e = document.activeElement; return [e.id || e.textContent, getComputedStyle(e).outlineStyle]"
    for _ in range(6):
        press(browser, "Tab")
        name, outline = browser.run(focus)
        passed.append(name)
        assert outline == "solid", name
    assert passed == ["filter", "pause", "CSV", "JSON", "Prometheus", "Limit"]
    press(browser, "Enter")
    assert browser.run("return document.querySelector('#limits th').ariaSort") == "ascending"
    assert browser.run("return document.activeElement.textContent") == "Limit"
    sortable = "document.querySelectorAll('th button').length - document.querySelectorAll('thead th:not(.plain)').length"
    assert browser.run("return " + sortable) == 0
    assert browser.complaints() == []


def test_without_javascript_the_page_loads_itself_again(browser, weir, load):
    wait_until(lambda: "script&#62;" in get(weir, "/")[2], "the evil name is on the page", 20)
    open_page(browser, weir, script=False)
    assert browser.text("[data-f=mode]") == "enforce" and browser.text("[data-f=live]").startswith("as of 2")
    assert len(browser.run("return " + ROWS)) == 4
    assert EVIL in browser.text("#top-refused")
    assert browser.run("return document.getElementById('pause').offsetParent === null")
    assert not browser.run("return document.querySelector('th button')")
    refresh = "return document.querySelector('meta[http-equiv=refresh]').content"
    assert browser.run(refresh) == "5"
    assert browser.complaints() == []


CONTRAST = """
const lightness = (text) => {
  const [r, g, b] = text.match(/[\\d.]+/g).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const over = (top, below) => {  // a colour that lets something through
  const [r, g, b, a = 1] = top.match(/[\\d.]+/g).map(Number), under = below.match(/[\\d.]+/g).map(Number);
  return `rgb(${[r, g, b].map((v, i) => v * a + under[i] * (1 - a)).join(', ')})`;
};
const ground = (e) => {
  if (!e) return 'rgb(255, 255, 255)';
  return over(getComputedStyle(e).backgroundColor, ground(e.parentElement));
};
const opacity = (e) => e ? getComputedStyle(e).opacity * opacity(e.parentElement) : 1;
const poor = [];
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
  if (!own || e.closest('script, noscript, [hidden]') || !e.offsetParent) continue;
  const back = ground(e), ink = getComputedStyle(e).color.match(/[\\d.]+/g).map(Number);
  const text = over(`rgba(${ink.slice(0, 3).join(', ')}, ${(ink[3] ?? 1) * opacity(e)})`, back);
  const [a, b] = [lightness(text), lightness(back)].sort((x, y) => y - x);
  if ((a + 0.05) / (b + 0.05) < 4.5) poor.push(`${e.tagName}.${e.className}: ${e.textContent}: ${(a + 0.05) / (b + 0.05)}`);
}
return poor;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_and_narrow_screens(browser, weir, load, scheme):
    """WCAG AA: 4.5 to 1 for every text; and nothing wider than a small screen."""
    open_page(browser, weir, scheme=scheme, width=390, height=2400)
    wait_live(browser)
    browser.wait("document.querySelector('tr.refusing') && document.querySelector('tr.shadowing')", "all colours")
    assert browser.run(CONTRAST) == []
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert (int(ground.split("(")[1].split(",")[0]) < 64) == (scheme == "dark")
    assert browser.run("return document.documentElement.scrollWidth") <= 390
    shoot(browser, f"narrow-{scheme}")
    assert browser.complaints() == []


KINDS = """
[policy default]
cmd.get = 2000/d, 100000/s per policy
cmd.set = deny
bytes-in = 2mb/s burst 8mb
bytes-out = 1gb/h burst 100001
inflight = 1000
connections = 5
connects = 3/s over shadow
cmd.incr = 7/m over delay 2s
[limit plan]
fixed = 1000/month, 50/day
tz = Europe/Berlin
penalty = 1m..1h
[limit trial]
sliding = 5/d
over = shadow
"""
CELLS = """
const texts = {};
for (const id of ['limits', 'named', 'classes', 'listeners'])
  texts[id] = [...document.querySelectorAll(`#${id} tr`)].map((row) => [...row.cells].map((cell) => cell.textContent));
texts.nodes = [...document.querySelectorAll('#nodes tr')].map((row) => [...row.cells].slice(0, 2).map((cell) => [cell.textContent, cell.className]));
texts.kinds = [...document.querySelectorAll('#limits tbody > *, #limits tbody th, #limits tbody td')].map((e) => e.className);
texts.meters = [...document.querySelectorAll('.meter rect')].map((e) => Number(e.getAttribute('width')).toFixed(0));
texts.lanes = [...document.querySelectorAll('#lanes div')].map((e) => e.textContent);
for (const e of document.querySelectorAll('[data-f]')) texts[e.dataset.f] = [e.textContent, e.className];
for (const moving of ['live', 'uptime', 'reload', 'turn-p99', 'lanes']) delete texts[moving];
return texts;
"""


def test_the_script_writes_what_the_server_wrote(browser, farm, shared_redis):
    weir = farm.weir(shared_redis, sections=KINDS + ADMIN)
    with weir.connect() as conn:
        for _ in range(18):
            conn.ask(*["GET x"] * 100)

        def is_calm():
            found = stats(weir, 0)
            points = found["history"]["commands_per_second"]
            busy = [limit for limit in found["limits"] if limit["allowed_per_second"] > 0]
            has_been = found["commands"]["read"]["forwarded"] == 1800 and max(points, default=0) > 0
            return has_been and points[-1] == 0 and not busy

        wait_until(is_calm, "all is counted and nothing moves", 20)
        open_page(browser, weir, script=False)
        served = browser.run(CELLS)
        open_page(browser, weir)
        wait_live(browser)
        live = browser.run(CELLS)
    for name, texts in served.items():
        assert live[name] == texts, name
    assert live["limits"][1][0] == "default/cmd.getcommands 2000/d burst 2000, per subject, refuse"
    assert live["named"][1][0] == "planfixed 1000/month, 50/day, Europe/Berlin, penalty 1m..1h"
    assert live["kinds"][0] == "near" and any("burst 8mb" in row[0] for row in live["limits"])
    assert browser.complaints() == []
