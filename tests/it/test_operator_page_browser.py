"""The operators' page in a real browser: it updates, shows clients' text as text, and is fully
usable.
"""

import base64
import threading

import pytest
from kit.admin import ADMIN, get, stats, url_of
from kit.browser import page_of
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
def weir(shared_farm, shared_redis):
    return shared_farm.weir(shared_redis, sections=LIMITS + ADMIN, identity="name, ip")


@pytest.fixture
def load(weir):
    """A refused client, and a client with a hostile name, until the test ends."""
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


def test_without_javascript_one_line_says_so(browser, weir):
    open_page(browser, weir, script=False)
    seen = browser.run("return document.body.innerText").split("\n")
    assert [line for line in seen if line.strip()] == [
        "weir",
        "This page needs JavaScript. The links below lead to the figures without a browser script.",
        "CSV",
        "JSON",
        "Prometheus",
    ]
    links = browser.run("return [...document.querySelectorAll('nav a')].map((a) => [a.getAttribute('href'), a.checkVisibility()])")
    assert links == [["/api/v1/stats?format=csv", True], ["/api/v1/stats?history=0", True], ["/metrics", True]]
    assert all(get(weir, path)[0] == 200 for path, _ in links)
    assert browser.complaints() == []
    open_page(browser, weir)
    wait_live(browser)
    assert browser.run("return document.querySelector('main').checkVisibility()")
    assert "JavaScript" not in browser.run("return document.body.innerText")


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
    """WCAG AA: 4.5 to 1 for every text. Nothing is wider than a small screen."""
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
const every = (selector) => [...document.querySelectorAll(selector)];
const texts = {};
for (const id of ['limits', 'named', 'classes', 'listeners', 'nodes'])
  texts[id] = every(`#${id} tbody tr`).map((row) => [...row.cells].map((cell) => cell.textContent));
texts.nodes = every('#nodes tbody td:nth-child(-n + 2), #nodes tbody th')
  .map((cell) => [cell.textContent, cell.className]);
texts.names = every('#limits .name, #limits summary .sub').map((node) => node.textContent);
texts.kinds = every('#limits tr:first-child, #limits td')
  .slice(1, 11).map((e) => e.className);
texts.meters = every('.meter rect').map((e) => Number(e.getAttribute('width')).toFixed(0));
texts.findings = every('#findings li').map((e) => [e.className, e.textContent]);
texts.title = document.title;
texts.fields = Object.fromEntries(every('[data-f]').map((e) => [e.dataset.f, e.textContent]));
texts.classes_of = Object.fromEntries(every('[data-f]').map((e) => [e.dataset.f, e.className]));
return texts;
"""
WHAT = {
    "default/cmd.get": "commands 2000/d burst 2000, per subject, refuse",
    "default/cmd.get#2": "commands 100000/s burst 100000, per policy, refuse",
    "default/cmd.set": "commands denied",
    "default/bytes-in": "bytes-in 2mb/s burst 8mb, per subject, refuse",
    "default/bytes-out": "bytes-out 1gb/h burst 100001, per subject, refuse",
    "default/inflight": "inflight 1000, per subject, refuse",
    "default/connections": "connections 5, per subject, close",
    "default/connects": "connects 3/s burst 3, per subject, shadow",
    "default/cmd.incr": "commands 7/m burst 1, per subject, delay",
}
USE = [  # state, passing, over, chart, used, admitted, delayed, refused, shadowed
    ["near", "0/sof 2000/d each", "0/s", "", "90 % ip:127.0.0.1", "1,800", "0", "0", "0"],
    ["ok", "0/sof 100000/s", "0/s", "", "0 % ", "1,800", "0", "0", "0"],
    ["ok", "0/s", "0/s", "", "0 % ", "0", "0", "0", "0"],
    ["ok", "0 B/sof 2mb/s each", "0 B/s", "", "0 % ", "36,000", "0", "0", "0"],
    ["ok", "0 B/sof 1gb/h each", "0 B/s", "", "0 % ", "9,000", "0", "0", "0"],
    ["ok", "0/s", "0/s", "", "0 % ", "1,800", "0", "0", "0"],
    ["ok", "0/s", "0/s", "", "20 % ip:127.0.0.1", "1", "0", "0", "0"],
    ["ok", "0/sof 3/s each", "0/s", "", "0 % ", "1", "0", "0", "0"],
    ["ok", "0/sof 7/m each", "0/s", "", "0 % ", "0", "0", "0", "0"],
]
CALM = {
    "mode": "enforce", "name": "", "commands": "0", "refused": "0", "refused-share": "(0 %)", "delayed": "0",
    "shadowed": "0", "errors": "0", "redis-errors": "0", "bytes-in": "0 B/s", "bytes-out": "0 B/s", "in-flight": "0",
    "oldest": "\u2013", "connections": "1", "max-clients": "10,000", "turned-away": "0", "upstream": "up",
    "upstream-errors": "0", "lanes-mode": "shared by clients", "subjects": "1", "workers": "2", "version": "0.2.0",
    "latency-p50": "\u2013", "latency-p99": "\u2013", "upstream-p50": "\u2013", "upstream-p99": "\u2013",
    "overhead-p50": "\u2013", "overhead-p99": "\u2013", "delay-p99": "\u2013", "wait-p99": "\u2013", "more-limits": "",
}  # fmt: skip


def test_every_kind_of_row_and_figure(browser, farm, shared_redis):
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

        wait_until(is_calm, "all is counted and nothing moves", 60)
        open_page(browser, weir)
        wait_live(browser)
        live, told = browser.run(CELLS), stats(weir, 0)
    assert live["names"] == [text for pair in WHAT.items() for text in pair]
    assert [row[1:] for row in live["limits"]] == USE
    who = {row[0].partition("1 subject in default")[0]: row[0].partition("1 subject in default")[2] for row in live["limits"]}
    assert list(who) == [name + what for name, what in WHAT.items()]
    heavy = [f"; use and refusals of the heaviest:ip:127.0.0.1{used} %0 of" for used in (90, 20)]
    assert [text for text in who.values() if not text.startswith("; no heavy subject uses it")] == [who[key] for key in (list(who)[0], list(who)[6])]
    assert all(text.startswith(start) for text, start in zip((list(who.values())[0], list(who.values())[6]), heavy, strict=True))
    assert live["kinds"] == ["near", "", "n", "n zero", "", "use", "n", "n zero", "n zero", "n zero"]
    assert live["meters"] == ["90", "0", "0", "0", "0", "0", "20", "0", "0"]
    assert live["named"] == [
        ["planfixed 1000/month, 50/day, Europe/Berlin, penalty 1m..1h", "0", "0", "0", "0", "\u2013"],
        ["trialsliding 5/d, shadow", "0", "0", "0", "0", "\u2013"],
    ]
    read = ["read", "1,800", "0", "0", "0", "0", "0"]
    names = ["other", "read", "write", "blocking", "script", "control", "pubsub", "tx"]
    assert live["classes"] == [read if name == "read" else [name, *"000000"] for name in names]
    assert live["listeners"] == [[told["clients"]["listeners"][0]["listener"], "1", "1", "0", "0"]]
    assert live["nodes"] == [[shared_redis.upstream, "who"], ["up", "up"]]
    assert live["findings"] == [["good", "Nothing is wrong none of 9 limits refuses"]] and live["title"] == "weir"
    fields = live["fields"]
    assert {name: fields[name] for name in CALM} == CALM
    assert fields["upstream-address"] == shared_redis.upstream
    assert (fields["pid"], fields["config"]) == (str(weir.child.pid), str(weir.config))
    assert fields["commands-peak"] == browser.run("return perSecond(arguments[0])", max(told["history"]["commands_per_second"]))
    states = browser.run("return [...document.querySelectorAll('#lanes div')].map((e) => [...e.children].map((part) => part.textContent))")
    assert {name: int(n) for name, n in states} == told["upstream"]["connections"]
    assert fields["lanes"] == str(sum(told["upstream"]["connections"].values()))
    assert (live["classes_of"]["mode"], live["classes_of"]["upstream"]) == ("badge enforce", "state is-up")
    assert live["classes_of"]["oldest"] == ""
    assert browser.complaints() == []


FIGURES = {
    "count": [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")],
    "rate": [(0, "0"), (3.52, "3.5"), (4.02, "4"), (9.96, "10"), (9999.4, "9,999"), (9999.6, "10.0k"), (999960, "1.00M")],
    "bytes": [(0, "0 B/s"), (1023.4, "1023 B/s"), (1023.6, "1 KB/s"), (1536, "1.5 KB/s"), (300 * 2**20, "300 MB/s"), (5e15, "4656613 GB/s")],
    "percent": [(0, "0 %"), (0.0912, "9.1 %"), (0.97, "97 %"), (1, "100 %")],
    "duration": [(0, "\u2013"), (41e-7, "4.1 \u00b5s"), (0.0009994, "999 \u00b5s"), (0.0009996, "1 ms"), (0.25, "250 ms"), (2.5, "2.5 s")],
    "span": [(59, "59 s"), (61, "1 min 1 s"), (3 * 3600 + 720, "3 h 12 min"), (4 * 86400 + 3600, "4 d 1 h")],
    "plain": [("a\tb\x00", "a\ufffdb\ufffd"), ("caf\u00e9 <b>", "caf\u00e9 <b>")],
}  # fmt: skip


@pytest.mark.parametrize("figure", FIGURES)
def test_how_numbers_are_written(browser, weir, figure):
    """As findings are (tests/unit/test_figures.c), at the bounds between their forms."""
    open_page(browser, weir)
    wait_live(browser)
    for value, wanted in FIGURES[figure]:
        assert browser.run(f"return {figure}(arguments[0])", value) == wanted


def test_paths_of_charts(browser, weir):
    open_page(browser, weir)
    wait_live(browser)
    assert browser.run("return [line([1, 4], 4, 40), area([1, 4], 4, 40)]") == ["M298 29.25L300 1.5", "M298 29.25L300 1.5V40H298Z"]
    assert browser.run("return [line([], 0, 40), area([], 0, 40), area([0, 0], 0, 40)]") == ["", "", ""]
    assert browser.run("return [height(1, 0, 40), peak([1, 4, 2]), peak([])]") == [38.5, 4, 0]


MANY = "".join(f"[policy p{i}]\nmatch = name:p{i}-*\ncmd.get = 1000/s\ncmd.set = 1000/s\n" for i in range(9))
TWENTY_ONE = MANY + "[policy default]\nread = 5/m\ncmd.set = 1/m\ncmd.del = 1/m over shadow\n"


@pytest.fixture
def busy(farm, shared_redis):
    """Of 21 limits the last three are used: two refuse and one would. A client called bulk causes
    that.
    """
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
    assert browser.run("return /^weir does not answer the figures below are from ..:..:..$/.test(document.querySelector('#findings').textContent)")


def test_columns_stay_where_they_are(browser, farm, shared_redis):
    """From idle to refusing: rows change their order and their numbers, but no column moves."""
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
