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
ROWS = "[...document.querySelectorAll('#limits tbody tr .name')].map((name) => name.textContent)"


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
    codes = {"Tab": 9, "Enter": 13, " ": 32, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39}
    codes |= {"ArrowDown": 40, "Escape": 27}
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
    assert sorted(browser.run("return " + ROWS)) == ["default/cmd.incr", "default/cmd.set", "default/read", "evil/cmd.get"]
    read = "Number(document.querySelector('[data-key=\"default/read\"] td:nth-child(7)').textContent.replaceAll(',', ''))"
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
        "document.querySelector('[data-key=\"evil/cmd.get\"] .use bdi').textContent === arguments[0]", "it is the fullest",
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
    assert sorted(browser.run("return " + ROWS)) == ["default/cmd.incr", "default/cmd.set"]
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
    focus = "const e = document.activeElement; return [e.id || e.textContent, getComputedStyle(e).outlineStyle]"
    passed = []
    while "Limit" not in passed:
        press(browser, "Tab")
        name, outline = browser.run(focus)
        passed.append(name)
        assert outline == "solid", name
    findings = len(passed) - len(CHARTS) - 3
    assert findings >= 1
    assert passed == ["filter", "pause", *passed[2 : 2 + findings], *("chart-" + name for name in CHARTS), "Limit"]
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
CHARTS = ["commands", "upstream", "latency", "overhead", "in-flight", "delay", "connections"]
CELLS = """
const texts = {};
for (const id of ['limits', 'named', 'classes', 'listeners'])
  texts[id] = [...document.querySelectorAll(`#${id} tr`)].map((row) => [...row.cells].map((cell) => cell.textContent));
texts.nodes = [...document.querySelectorAll('#nodes tr')].map((row) => [...row.cells].slice(0, 2).map((cell) => [cell.textContent, cell.className]));
texts.kinds = [...document.querySelectorAll('#limits tbody > *, #limits tbody th, #limits tbody td')].map((e) => e.className);
texts.meters = [...document.querySelectorAll('.meter rect')].map((e) => Number(e.getAttribute('width')).toFixed(0));
texts.lanes = [...document.querySelectorAll('#lanes div')].map((e) => e.textContent);
texts.title = document.title;
texts.findings = [...document.querySelectorAll('#findings li')].map((e) => [e.className, e.textContent]);
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

        def cells(script):
            open_page(browser, weir, script=script)
            if script:
                wait_live(browser)
            return browser.run(CELLS)

        def stands_still():
            """(served, live) if what weir serves was the same before and after."""
            before, live = cells(script=False), cells(script=True)
            return (before, live) if cells(script=False) == before else None

        wait_until(is_calm, "all is counted and nothing moves", 60)
        served, live = wait_until(stands_still, "weir serves the same twice", 60)
    for name, texts in served.items():
        assert live[name] == texts, name
    assert live["limits"][1][0].startswith("default/cmd.getcommands 2000/d burst 2000, per subject, refuse")
    assert live["findings"] == [["good", "Nothing is wrong none of 9 limits refuses"]] and live["title"] == "weir"
    assert live["named"][1][0] == "planfixed 1000/month, 50/day, Europe/Berlin, penalty 1m..1h"
    assert live["kinds"][0] == "near" and any("burst 8mb" in row[0] for row in live["limits"])
    assert browser.complaints() == []


MANY = "".join(f"[policy p{i}]\nmatch = name:p{i}-*\ncmd.get = 1000/s\ncmd.set = 1000/s\n" for i in range(9))
TWENTY_ONE = MANY + "[policy default]\nread = 5/m\ncmd.set = 1/m\ncmd.del = 1/m over shadow\n"


@pytest.fixture
def busy(farm, shared_redis):
    """Of 21 limits, of which the last three are used, two refuse and one would; somebody called bulk does it."""
    weir = farm.weir(shared_redis, sections=TWENTY_ONE + ADMIN, identity="name, ip", name="orders-eu")
    is_over = threading.Event()

    def run():
        with weir.connect() as conn:
            conn.call("CLIENT", "SETNAME", "bulk")
            while not is_over.wait(0.02):
                conn.ask(*["GET x"] * 9, "SET a 1", "DEL a", "LPUSH x")

    thread = threading.Thread(target=run)
    thread.start()
    yield weir
    is_over.set()
    thread.join()


def test_what_is_wrong_is_read_first(browser, busy):
    open_page(browser, busy)
    wait_live(browser)
    first = "document.querySelector('#findings li:first-child a')"
    browser.wait(f"{first}.textContent === '2 of 21 limits refusing'", "what refuses")
    assert browser.text("#findings li") .endswith("default/read, default/cmd.set")
    assert browser.run("return document.title") == "2 of 21 limits refusing - orders-eu"
    assert browser.text("h1") == "weir orders-eu"
    others = browser.run("return [...document.querySelectorAll('#findings a')].map((e) => e.textContent)")
    assert "1 of 21 limits shadowing" in others
    top = "document.querySelector(arguments[0]).getBoundingClientRect().top"
    tops = [browser.run("return " + top, at) for at in ("#findings", ".overview", "#limits-card", "#top-refused", "#process")]
    assert tops == sorted(tops) and tops[0] < 100
    assert browser.run("return " + ROWS)[:3] == ["default/read", "default/cmd.set", "default/cmd.del"]
    browser.run(f"{first}.click()")
    browser.wait(f"Math.abs({top}) < 5", "it leads to the limits", "#limits-card")
    browser.wait("document.querySelector('[data-f=redis-errors]').textContent !== '0'", "Redis' errors are told")
    assert browser.text("[data-f=errors]") == "0"
    assert browser.complaints() == []


def test_from_a_limit_to_its_subjects(browser, busy):
    open_page(browser, busy)
    wait_live(browser)
    browser.wait("document.querySelector('[data-key=\"default/read\"]').className === 'refusing'", "it refuses")
    limit = "document.querySelector('[data-key=\"default/read\"] summary')"
    assert browser.run(f"{limit}.focus(); return {limit}.parentNode.open") is False
    press(browser, "Enter")
    holder = "document.querySelector('[data-key=\"default/read\"] .holders li')"
    browser.wait(f"{holder} && {holder}.checkVisibility()", "who uses it")
    browser.wait(f"/^name:bulk\\d+ %\\d[0-9,]* of [0-9,]+\\/s$/.test({holder}.textContent)", "how much, and what is refused")
    uptime = browser.text("[data-f=uptime]")
    browser.wait("document.querySelector('[data-f=uptime]').textContent !== arguments[0]", "a refresh", uptime)
    assert browser.run(f"return {limit}.parentNode.open && document.activeElement === {limit}")
    assert browser.complaints() == []


def test_what_is_drawn_has_a_legend(browser, busy):
    open_page(browser, busy)
    wait_live(browser)
    colour = "getComputedStyle(document.querySelector(arguments[0])).stroke"
    swatch = "getComputedStyle(document.querySelector(arguments[0]), '::before').borderTopColor"
    pairs = {
        "#chart-commands .line": ".k-commands",
        "#chart-commands .line.refused": ".k-refused",
        "#chart-commands .line.redis": ".k-redis",
        "#chart-commands .line.errors": ".k-errors",
        "#limits .spark .line": ".k-line",
        "#limits .spark .line.refused": ".k-over",
        "#limits .spark .rate": ".k-rate",
    }
    for line, key in pairs.items():
        assert browser.run("return " + colour, line) == browser.run("return " + swatch, key), line
    drawn = browser.run("return [...document.querySelectorAll('#chart-commands .line, #limits tr:first-child .spark path')].length")
    assert drawn == len(pairs)


def test_charts_tell_their_values_to_a_pointer_and_to_keys(browser, busy):
    open_page(browser, busy)
    wait_live(browser)
    browser.wait("series.commands_per_second.filter((n) => n > 0).length > 2", "points")
    box = browser.run("const r = $('chart-commands').getBoundingClientRect(); return [r.right - 1, r.top + 50]")
    assert browser.run("return document.getElementById('tip').hidden")
    browser.tell("Input.dispatchMouseEvent", type="mouseMoved", x=box[0], y=box[1])
    tip = "document.getElementById('tip')"
    browser.wait(
        f"/^..:..:..  commands [0-9,.]+\\/s, refused [0-9,.]+\\/s, errors from Redis [0-9,.]+\\/s/.test({tip}.textContent)", "values"
    )
    assert browser.run(f"const r = {tip}.getBoundingClientRect(); return r.left >= 0 && r.right <= innerWidth && !{tip}.hidden")
    browser.tell("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    browser.wait(tip + ".hidden", "it goes with the pointer")

    browser.run("document.getElementById('chart-in-flight').focus()")
    press(browser, "End")
    now = browser.text("#tip")
    assert " in flight " in now
    press(browser, "ArrowLeft", "ArrowLeft")
    chart = "document.activeElement"
    assert browser.run(f"return {chart}.getAttribute('aria-valuetext') === {tip}.textContent && {chart}.getAttribute('aria-valuenow')") == "-4"
    press(browser, "Home")
    assert browser.text("#tip").endswith(" in flight \u2013"), "there was no point yet"
    press(browser, "Escape")
    assert browser.run(f"return {tip}.hidden")

    browser.run("document.querySelector('#limits .plot[tabindex=\"0\"]').focus()")
    press(browser, "End")
    assert browser.run("return /passing .*, over /.test(document.getElementById('tip').textContent)")
    press(browser, "ArrowDown")
    assert browser.run("return document.activeElement === document.querySelectorAll('#limits .plot')[1]")
    assert browser.complaints() == []


@pytest.mark.parametrize("width", [400, 1280])
def test_nothing_is_wider_than_the_screen(browser, busy, width):
    open_page(browser, busy, width=width, height=900)
    wait_live(browser)
    browser.wait("document.querySelector('tr.refusing')", "it refuses")
    browser.run("for (const part of document.querySelectorAll('details')) part.open = true")
    wider = """
    const width = document.documentElement.clientWidth;
    return [...document.querySelectorAll('body *')].filter((e) => {
      const r = e.getBoundingClientRect();
      return r.width > 1 && (r.right > width + 1 || r.left < -1) && !e.closest('.scroll:has(#classes, #listeners), .cards > thead');
    }).map((e) => e.tagName + '.' + e.className + ': ' + e.textContent.slice(0, 40));
    """
    assert browser.run(wider) == []
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.run("const s = document.querySelector('.scroll:has(#limits)'); return s.scrollWidth - s.clientWidth") == 0
    shoot(browser, f"width-{width}")


def test_a_weir_that_is_gone_is_told(browser, farm, shared_redis):
    weir = farm.weir(shared_redis, sections=ADMIN, name="orders-eu")
    open_page(browser, weir)
    wait_live(browser)
    weir.stop()
    browser.wait("document.title === 'weir does not answer - orders-eu'", "the tab says so")
    assert browser.run("return /^weir does not answer all below is of ..:..:..$/.test(document.querySelector('#findings').textContent)")


def test_columns_stay_where_they_are(browser, farm, shared_redis):
    """From idle to refusing: the rows change their order and their numbers, but no column moves."""
    weir = farm.weir(shared_redis, sections=TWENTY_ONE + ADMIN, identity="name, ip")
    open_page(browser, weir)
    wait_live(browser)
    columns = "return [...document.querySelectorAll('#limits thead th')].map((e) => Math.round(e.getBoundingClientRect().left))"
    before = browser.run(columns)
    with weir.connect() as conn:
        conn.call("CLIENT", "SETNAME", "bulk")

        def is_refusing():
            conn.ask(*["GET x"] * 20, "SET a 1", "DEL a")
            return browser.run("return document.querySelectorAll('#limits tr.refusing').length") == 2

        wait_until(is_refusing, "two limits refuse", 30)
        browser.wait("document.querySelector('tr.refusing .over')", "how much is over")
    assert browser.run(columns) == before
