"""The operators' page: what weir serves, and what a browser shows of weir's state."""

import re
import signal

import pytest
from kit.admin import ADMIN, get, limit_of, stats, url_of
from kit.browser import page_of
from kit.harness import TOLD_AT_ONCE, REPO, free_port, run_weir, wait_until
from kit.limits import OPERATOR, order
from kit.resp import Error

EVIL = "<script>alert(1)</script>"
ATTRIBUTE = "'\"onmouseover=alert(2)&amp;"
LIMITS = """
[policy evil]
match = name:<*
cmd.get = 3/m
[policy default]
cmd.set = 2/m per policy
cmd.incr = 1/m over shadow
cmd.append = deny
"""


@pytest.fixture
def weir(farm, redis):
    return farm.weir(redis, sections=LIMITS + ADMIN, identity="name, ip")


def test_nothing_may_run_but_the_pages_script(weir):
    _, headers, body = get(weir, "/")
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    policy = dict(part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";"))
    assert policy == {
        "default-src": "'none'",
        "base-uri": "'none'",
        "form-action": "'none'",
        "frame-ancestors": "'none'",
        "style-src": "'self'",
        "script-src": "'self'",
        "connect-src": "'self'",
        "img-src": "data:",
        "require-trusted-types-for": "'script'",
        "trusted-types": "'none'",
    }
    assert re.findall(r"<script.*?</script>", body, re.S) == ['<script src="/page.js" defer></script>']
    assert re.findall(r"<link [^>]*>", body)[-1] == '<link rel="stylesheet" href="/page.css">'
    assert not re.search(r"(?i)<style|<(form|iframe|object|img|base)\b|\s(style|on[a-z]+)=|(src|href)=.(https?:|//|javascript:)", body)
    assert get(weir, "/")[2] == body, "nothing in it is of this weir"


def test_only_the_pages_own_files_may_run_or_style(weir):
    """The Content-Security-Policy allows all of weir's paths; the content types do not."""
    types = {"/page.js": "text/javascript; charset=utf-8", "/page.css": "text/css; charset=utf-8"}
    for path in ("/", "/page.js", "/page.css", "/metrics", "/healthz", "/readyz", "/api/v1/stats", "/api/v1/stats?format=csv", "/nix"):
        _, headers, _ = get(weir, path)
        assert headers["X-Content-Type-Options"] == "nosniff"
        found = headers["Content-Type"]
        assert found == types[path] if path in types else "script" not in found and "css" not in found


def test_headers_of_all_answers(weir):
    for path in ("/", "/page.js", "/page.css", "/metrics", "/healthz", "/readyz", "/api/v1/stats", "/nix"):
        headers = get(weir, path)[1]
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["X-Frame-Options"] == "DENY"
        assert headers["Referrer-Policy"] == "no-referrer"
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; ") and "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy and ("script-src" in policy) == (path == "/")


def test_the_page_changes_nothing(weir):
    for path in ("/", "/page.js", "/page.css"):
        for method in ("POST", "PUT", "DELETE"):
            assert get(weir, path, method, b"x")[0] == 405
        status, headers, body = get(weir, path, "HEAD")
        assert status == 200 and body == "" and int(headers["Content-Length"]) > 5_000


def test_the_source_writes_text_only(weir):
    scripts = sorted((REPO / "src/admin/page").glob("*.js"))
    script = "".join(path.read_text() for path in scripts)
    embedded = re.findall(r'FILE_OF\("([a-z]+\.js)"\)', (REPO / "src/admin/http.c").read_text())
    assert sorted(embedded) == [path.name for path in scripts]
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval|Function\(", script)
    assert get(weir, "/page.js")[2] == "".join((REPO / "src/admin/page" / name).read_text() for name in embedded)
    for name in ("page.html", "page.css"):
        assert get(weir, "/" + name.replace("page.html", ""))[2] == (REPO / "src/admin/page" / name).read_text()


def test_what_the_page_says(browser, weir, redis):
    page = page_of(browser, weir)
    fields = page.fields
    assert fields["mode"] == "enforce" and fields["pid"] == str(weir.child.pid)
    assert fields["config"] == str(weir.config) and fields["reload"].startswith("none since ")
    assert fields["upstream"] == "up" and fields["upstream-address"] == redis.upstream
    assert "nodes-card" in page.hidden and "named-card" in page.hidden
    assert fields["max-clients"] == "10,000" and fields["workers"] == "2"
    rows = [row[0] for row in page.tables["limits"][1:]]
    assert [re.match(r"[^ ]+/[a-z.]+?(?=commands)", row).group() for row in rows] == [
        "evil/cmd.get",
        "default/cmd.set",
        "default/cmd.incr",
        "default/cmd.append",
    ]
    assert rows[1].startswith("default/cmd.setcommands 2/m burst 2, per policy, refuse")
    assert page.tables["events"][1] == ["Nothing has happened yet."]
    assert page.tables["top-refused"][1] == ["No subject at the moment."]
    assert {row[0] for row in page.tables["classes"][1:]} >= {"read", "write", "script", "tx"}


FOREIGN = """
return {
  tags: [...document.querySelectorAll('script, img, iframe, a:not([href^="#"], footer a)')]
    .map((node) => node.outerHTML),
  handlers: [...document.querySelectorAll('*')].flatMap((node) => node.getAttributeNames())
    .filter((name) => /^on|^style$/.test(name)).length,
};
"""


def test_what_clients_call_themselves_stays_text(browser, weir):
    with weir.connect() as evil, weir.connect() as other:
        evil.call("CLIENT", "SETNAME", EVIL)
        other.call("CLIENT", "SETNAME", ATTRIBUTE)

        def is_seen():
            evil.ask(*["GET x"] * 100)
            other.ask(*["GET x"] * 100)
            page = page_of(browser, weir)
            named = {row[0] for row in page.tables["top-commands"]}
            refused = [row for row in page.tables["top-refused"] if row[0] == "name:" + EVIL]
            return refused if {"name:" + EVIL, "name:" + ATTRIBUTE} <= named and refused else None

        (row,) = wait_until(is_seen, "both are on the page", 20)
    assert row[1] == "evil/cmd.get" and row[2] != "0"
    assert browser.run(FOREIGN) == {"tags": ['<script src="/page.js" defer=""></script>'], "handlers": 0}
    assert browser.complaints() == []


HOSTILE = ["<img/src=x/onerror=document.title='owned'>", "\"><svg/onload=document.title='owned'>", "javascript:document.title='owned'"]


@pytest.fixture
def hostile(redis):
    for name in HOSTILE:
        redis.call("ACL", "SETUSER", name, "on", ">pw", "~*", "+@all")
    yield
    redis.call("ACL", "DELUSER", *HOSTILE)


def test_hostile_names_of_users_and_keys_stay_text(browser, farm, redis, hostile):
    """Clients choose both names. The names reach subjects, users of a limit, lines of one subject
    and events.
    """
    sections = "[policy hostile]\nmatch = user:*, key:*\ncmd.get = 3/h\n" + OPERATOR + ADMIN.replace("[admin]\n", "")
    weir = farm.weir(redis, sections=sections, identity="key:1, user, ip")
    users, keys = ([f"{kind}:{name}" for name in HOSTILE[:n]] for kind, n in (("user", 3), ("key", 2)))
    assert order(weir, "BLOCK", keys[0], "EX", "1m").startswith("OK")
    for key in keys:
        assert not isinstance(order(weir, "SET", "hostile", "cmd.get", "2/h", "FOR", key), Error)
    with weir.connect() as conn:

        def is_seen():
            for name in HOSTILE:
                conn.call("AUTH", name, "pw")
                conn.ask(*["GET x:1"] * 9)
            page = page_of(browser, weir)
            tops = {row[0] for row in page.tables["top-commands"]} & {row[0] for row in page.tables["top-refused"]}
            limit = page.tables["limits"][1]
            return page if set(users) <= tops and all(name in limit[0] for name in users) else None

        page = wait_until(is_seen, "all are among the refused, and behind the limit", 30)
    assert page.tables["limits"][1][0].startswith("hostile/cmd.get") and page.title == "1 of 1 limits refusing - weir"
    assert all(f"2/h for {key}" in page.tables["limits"][1][0] for key in keys)
    assert any(keys[0] in row[2] for row in page.tables["events"][1:])
    assert browser.run(FOREIGN) == {"tags": ['<script src="/page.js" defer=""></script>'], "handlers": 0}
    assert browser.complaints() == []


def test_what_limits_do_shows(browser, weir):
    def state(rule):
        return limit_of(stats(weir), rule)["state"]

    assert state("default/cmd.set") == "ok"
    with weir.connect() as conn:

        def both():
            conn.ask("SET a 1", "SET a 1", "SET a 1", "INCR n", "INCR n", "GET a")
            return state("default/cmd.set") == "refusing" and state("default/cmd.incr") == "shadowing"

        wait_until(both, "one limit refuses, the other only counts")
    page = page_of(browser, weir)
    assert page.states == ["refusing", "shadowing", "ok", "ok"]
    row = page.tables["limits"][1]
    assert row[0].startswith("default/cmd.set")
    assert row[1] == "refusing" and row[6] == "2" and row[7] == "0" and row[8] != "0"
    found = limit_of(stats(weir), "default/cmd.set")
    assert found["used"] > 0.8 and found["throttled"] > 0 and found["allowed"] == 2
    wait_until(lambda: any("cmd.set begins to refuse" in row[-1] for row in page_of(browser, weir).tables["events"]), "an event")


def test_a_limit_that_is_nearly_used_up(farm, redis):
    """By the subject with the highest usage, with its name; and by the rate, if there is one
    holder.
    """
    weir = farm.weir(redis, sections="[policy default]\ncmd.get = 10/h\nall = 1000/h\n" + ADMIN, identity="name, ip")
    with weir.connect() as conn:
        conn.call("CLIENT", "SETNAME", "ann")
        conn.ask(*["GET x"] * 9)

        def near():
            conn.call("ECHO", "x")  # the client stays among the heaviest
            limit = limit_of(stats(weir), "default/cmd.get")
            return limit if limit["state"] == "near" else None

        limit = wait_until(near, "nearly used up", 20)
    assert 0.8 < limit["used"] < 1 and limit["fullest_subject"] == "name:ann"
    assert limit["throttled"] == 0


def test_history_has_a_point_for_each_step(weir):
    def points(after):
        found = stats(weir, after)
        return found["history"], found

    history, _ = wait_until(lambda: (points(0)[0]["last"] >= 2 and points(0)), "two points", 20)
    assert history["step_seconds"] == 2
    with weir.connect() as conn:

        def is_counted():
            conn.ask(*["GET x"] * 50, "SET a 1")
            now = stats(weir)["now"]
            is_busy = now["commands_per_second"] > 10 and now["refused_per_second"] > 0
            return now if is_busy and now["connections"] == 1 else None

        now = wait_until(is_counted, "commands in a point", 20)
    assert now["latency_p99_seconds"] >= now["latency_p50_seconds"] > 0 and now["overhead_p99_seconds"] > 0
    assert now["loop_turn_p99_seconds"] > 0
    history, found = points(0)
    last = history["last"]
    lists = {name: values for name, values in history.items() if isinstance(values, list)}
    assert set(lists) == set(found["now"]) and {len(values) for values in lists.values()} == {last}
    assert max(lists["commands_per_second"]) > 10
    track = limit_of(found, "default/cmd.set")["history"]
    assert len(track["allowed_per_second"]) == len(track["over_per_second"]) == last
    assert max(track["allowed_per_second"]) > 0 and max(track["over_per_second"]) > 0

    history, found = points(last - 1)
    assert len(history["connections"]) == history["last"] - last + 1
    assert points(10**6)[0]["connections"] == []
    assert "history" not in stats(weir)
    for bad in ("x", "-1", "", "1.5", "99999999999999999999"):
        status, _, body = get(weir, f"/api/v1/stats?history={bad}")
        assert status == 400 and body.startswith("history takes the number"), bad


def test_a_reload_that_fails_is_told(browser, weir):
    good = weir.config.read_text()
    weir.config.write_text("[weir]\n<b>nix</b> = 1\n")
    weir.signal(1)
    page = wait_until(lambda: (page := page_of(browser, weir)).fields["reload"] == "failed" and page, "the reload failed")
    assert "weir.conf:2: [weir] <b>nix</b>: unknown key" in page.findings
    assert not browser.run("return document.querySelector('#findings b')")
    assert "unknown key" in stats(weir)["reloads"]["last_error"]
    weir.config.write_text(good)
    weir.signal(1)
    wait_until(lambda: page_of(browser, weir).fields["reload"].startswith("OK, "), "the reload went well")
    assert "reload" not in page_of(browser, weir).findings


def test_modes_and_an_upstream_that_is_away(browser, farm):
    weir = farm.weir(f"127.0.0.1:{free_port()}", sections=ADMIN, mode="shadow")
    page = page_of(browser, weir)
    assert page.fields["mode"] == "shadow" and page.fields["upstream"] == "away"
    assert page.tables["limits"][1] == ["No limits are configured."]
    assert page.fields["name"] == "" and page.title == "Redis is away - weir"
    assert page.findings.startswith("Redis is away 127.0.0.1:")


def test_the_page_says_that_weir_drains(browser, farm, redis):
    """The page shows the drain while a client still has a subscription, a transaction or a request.
    """
    weir = farm.weir(redis, sections=ADMIN, drain_timeout="1h")
    with weir.connect() as conn:
        conn.call("SUBSCRIBE", "c")
        weir.signal(signal.SIGTERM)
        wait_until(lambda: page_of(browser, weir).fields["mode"] == "draining", "the page says so")
        assert stats(weir)["draining"] is True
    assert weir.wait() == 0


def test_the_name_of_this_weir(browser, farm, redis):
    """In the heading, the tab, the log, the JSON and a label. The log tells the address of the
    page.
    """
    weir = farm.weir(redis, sections=ADMIN, name="orders-eu <1>")
    page = page_of(browser, weir)
    assert page.fields["name"] == "orders-eu <1>" and page.title == "orders-eu <1>"
    assert stats(weir)["name"] == "orders-eu <1>"
    assert 'weir_build_info{name="orders-eu <1>",version=' in get(weir, "/metrics")[2]
    log = weir.log()
    assert re.search(r"orders-eu <1> is ready$", log, re.M)
    assert f"page at {url_of(weir, '/')}\n" in log
    weir.stop()
    assert run_weir("-t", "-c", weir.config).returncode == 0
    weir.config.write_text(weir.config.read_text().replace("orders-eu <1>", "x" * 65))
    said = run_weir("-t", "-c", weir.config)
    assert said.returncode == 1 and "[weir] name: a name has 1 to 64 bytes" in said.stderr + said.stdout


def test_who_a_limit_holds_back(browser, farm, redis):
    sections = "[policy default]\nread = 20/m\ncmd.set = deny\nwrite = 1000/s\n" + ADMIN
    weir = farm.weir(redis, sections=sections, identity="name, ip")
    with weir.connect() as ann, weir.connect() as ben:
        ann.call("CLIENT", "SETNAME", "ann")
        ben.call("CLIENT", "SETNAME", "ben")

        def holders(rule):
            return {row["subject"]: row for row in limit_of(stats(weir), rule)["holders"]}

        ben.ask("GET x", "GET x")

        def both():
            ann.ask(*["GET x"] * 30, "SET a 1")
            ben.call("PING")  # ben stays among the heaviest
            return len(holders("default/read")) == 2 and holders("default/cmd.set") and holders("default/read")

        found = wait_until(both, "both use the limit", 20)
        assert list(found) == ["name:ann", "name:ben"], "the fullest first"
        assert found["name:ann"]["used"] > 0.9 > found["name:ben"]["used"] > 0
        assert found["name:ann"]["refused_per_second"] > 0 and found["name:ann"]["commands_per_second"] > 0
        assert "used" not in holders("default/cmd.set")["name:ann"], "what is always refused is never full"
        assert holders("default/write") == {}
        row = next(row for row in page_of(browser, weir).tables["limits"] if row[0].startswith("default/read"))
        assert " subjects in default; use and refusals of the heaviest:name:ann" in row[0]


def test_errors_of_redis_and_of_weir_are_told_apart(browser, farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN + "[policy default]\ninflight = 100\n", workers=1, **TOLD_AT_ONCE)
    with weir.connect() as conn:
        conn.ask("SET s x")
        # an error within EXEC's reply does not count as one
        conn.ask(*["LPUSH s 1"] * 5, "GET s", "MULTI", "LPUSH s 1", "EXEC")
        conn.ask("SUBSCRIBE", "EVALSHA x 0", "NIX")
        conn.call("HELLO", "3")
        conn.call("EVAL", "return redis.error_reply('ERR own')", "0")
        conn.call("EVAL", "return {redis.error_reply('ERR in')}", "0")
        seen = wait_until(lambda: upstream_errors(weir) >= 9 and upstream_errors(weir), "they are counted")
        assert seen == 9
        assert stats(weir)["upstream"]["error_replies"] == 9
        wait_until(lambda: max(stats(weir, 0)["history"]["redis_errors_per_second"], default=0) > 0, "a point", 20)
        assert max(stats(weir, 0)["history"]["errors_per_second"]) == 0
        redis.kill()

        def is_told():
            with weir.connect() as other:
                other.ask("GET x")
            return "weir answers" in page_of(browser, weir).findings

        wait_until(is_told, "weir answers in its place", 20)
    assert page_of(browser, weir).findings.startswith("Redis is away")


def upstream_errors(weir):
    return int(re.search(r"^weir_upstream_error_replies_total\{.*\} (\d+)$", get(weir, "/metrics")[2], re.M).group(1))


def test_a_redis_that_hangs_is_the_first_thing_read(browser, farm):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, upstream_check="50ms", drain_timeout="0")
    with weir.connect() as conn:
        conn.call("PING")
        redis.signal(signal.SIGSTOP)
        conn.send(b"GET x\r\n")
        told = rf"Redis does not answer {re.escape(redis.upstream)} for [0-9.]+ m?s; [1-9]\d* commands in flight, the oldest for "
        page = wait_until(lambda: re.match(told, (page := page_of(browser, weir)).findings) and page, "the page says so", 20)
        assert page.title == "Redis does not answer - weir" and page.fields["upstream"] == "does not answer"
        wait_until(lambda: re.fullmatch(r"[1-9.]+ s", page_of(browser, weir).fields["oldest"]), "it waits for more than a second", 20)
        wait_until(lambda: int(page_of(browser, weir).fields["in-flight"]) > 0, "in flight")
        redis.signal(signal.SIGCONT)
        assert conn.read() is None
        wait_until(lambda: page_of(browser, weir).findings.startswith("Nothing is wrong"), "it answers again", 20)


def test_what_is_refused_is_in_clients_latency_alone(farm, redis):
    """Redis is not asked, and clients get replies: the page says that refused commands count."""
    weir = farm.weir(redis, sections=ADMIN + "[policy default]\ncmd.get = deny\n")
    with weir.connect() as conn:

        def is_seen():
            conn.ask(*["GET x"] * 8)
            points = stats(weir, 0)["history"]
            return points if max(points["latency_p50_seconds"], default=0) > 0 else None

        points = wait_until(is_seen, "a point with refusals", 20)
    assert max(points["refused_per_second"]) > 0
    assert stats(weir)["times"]["upstream"]["count"] == 0
    _, _, body = get(weir, "/")
    assert "refused commands included" in body.split('id="h-latency"')[1].split("</section>")[0]


def test_deliberate_delay_is_no_latency(farm, redis):
    weir = farm.weir(redis, sections=ADMIN + "[policy default]\ncmd.get = 2/s over delay 20s\n")
    with weir.connect() as conn:
        conn.ask(*["GET x"] * 8)

        def is_seen():
            points = stats(weir, 0)["history"]
            has_both = all(max(points[f"{what}_p50_seconds"], default=0) > 0 for what in ("delay", "latency"))
            return has_both and points

        points = wait_until(is_seen, "a point with delays", 20)
    assert max(points["delay_p50_seconds"]) > max(points["latency_p50_seconds"])
    assert max(points["upstream_p50_seconds"]) > 0
    times = stats(weir)["times"]
    assert times["request"]["sum_seconds"] > times["delay"]["sum_seconds"] > 1
