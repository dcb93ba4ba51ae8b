"""Limits that the operator names: what is seen of them, and how operators change them."""

import pytest
from kit.admin import ADMIN, get, stats
from kit.browser import page_of
from kit.decisions import UNAVAILABLE, WRONGTYPE, admitted, decide, decision, decisions, fresh
from kit.harness import wait_until
from kit.limits import operator, order, plain
from kit.reloading import reload
from kit.resp import Error, pipeline
from test_admin_http import metrics, value

SEEN = """
[limit Once]
fixed = 1/100d
[limit trial]
sliding = 2/100d
sliding = 9/200d
over = shadow
[limit queue]
funnel = 1/100d
over = shadow
when-down = deny
[limit plan]
fixed = 100/month
tz = Europe/Berlin
penalty = 1m..1h
[policy operators]
match = name:operator
admin = yes
"""
LISTENING = ADMIN + "socket = {folder}/operator.sock\n"
MODES = [(1, "shared"), (2, "private")]


@pytest.fixture(params=MODES, ids=["1-shared", "2-private"])
def weir(request, farm, redis):
    workers, lanes = request.param
    return farm.weir(redis, workers=workers, lanes=lanes, sections=SEEN + LISTENING, identity="name, ip")


def listed(weir):
    rows = plain(order(weir, "LIST"))  # flat lists until HELLO 3
    rows = [row if isinstance(row, dict) else dict(zip(row[::2], row[1::2])) for row in rows]
    return {row["limit"]: row for row in rows if "asked" in row}


def counts(weir, name):
    return {field: listed(weir)[name][field] for field in ("asked", "passed", "limited", "shadowed", "errors")}


def change(weir, sections):
    """Reloads with other sections in place of SEEN."""
    return reload(weir, (sections + LISTENING).replace("{folder}", str(weir.folder)))


def counted(passed=0, limited=0, shadowed=0, errors=0):
    return {"asked": passed + limited + shadowed + errors, "passed": passed, "limited": limited, "shadowed": shadowed, "errors": errors}


def test_list_counts_what_became_of_named_limits(weir):
    conns = [weir.connect() for _ in range(4)]
    key = fresh()
    for conn in conns:
        decisions(conn, *[f"LIMIT CHECK once {key}"] * 3, f"LIMIT CHECK ONCE {key} PEEK", f"LIMIT FIXED {key} 1/d")
        conn.close()
    assert counts(weir, "Once") == counted(1, 11)
    rows = listed(weir)
    assert list(rows) == ["Once", "trial", "queue", "plan"] and rows["trial"]["rate"] == "2/100d, 9/200d"
    assert [rows["queue"][field] for field in ("what", "over", "when_down")] == ["funnel", "shadow", "deny"]
    assert [rows["Once"][field] for field in ("what", "over", "when_down")] == ["fixed", "refuse", "error"]
    assert change(weir, SEEN.replace("1/100d", "2/100d"))
    assert counts(weir, "Once") == counted(1, 11), "a reload resets nothing"


def test_a_named_limit_in_shadow_limits_nobody_and_counts(weir):
    """No client is limited, or waits. Decisions that would have been made are counted."""
    key = fresh()
    with weir.connect() as conn:
        found = decisions(conn, *[f"LIMIT CHECK trial {key}"] * 4)
        assert [f[:4] for f in found] == [(0, 2, 1, -1), (0, 2, 0, -1), (0, 2, 0, -1), (0, 2, 0, -1)]
        assert [f.limited for f in decisions(conn, *[f"LIMIT CHECK queue {key} WAIT 100000"] * 3)] == [0, 0, 0]
        assert plain(conn.call("LIMIT", "CHECK", "trial", key, "COST", 2, "PARTIAL"))[-1] == 2, "granted in full"
        assert counts(weir, "trial") == counted(2, shadowed=3) and counts(weir, "queue") == counted(1, shadowed=2)
        assert change(weir, SEEN.replace("over = shadow", "over = refuse"))
        wait_until(lambda: decide(conn, f"LIMIT CHECK trial {key}").limited == 1, "now it is limited")


def test_errors_are_counted(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=SEEN + LISTENING)
    with weir.connect() as conn:
        assert decide(conn, "LIMIT CHECK once k").limited == 0
        redis.kill()
        wait_until(lambda: conn.call("LIMIT", "CHECK", "once", "k") == UNAVAILABLE, "it is away")
        assert decide(conn, "LIMIT CHECK queue k").limited == 0, "shadow limits nobody, also when it denies"
        assert counts(weir, "Once")["errors"] >= 1 and counts(weir, "queue") == counted(shadowed=1)


def test_top_limited_names_the_keys_that_are_limited_most(weir):
    """The keys that are limited most, on all workers; for operators only."""
    noisy, other = fresh("noisy"), fresh("other")
    with weir.connect() as a, weir.connect() as b:
        for conn in (a, b):
            decisions(conn, *[f"LIMIT CHECK once {noisy}"] * 200, *[f"LIMIT CHECK once {other}"] * 20)
        assert a.call("LIMIT", "TOP", "BY", "LIMITED").startswith("NOPERM")
    with operator(weir) as conn:
        rows = [plain(row) for row in conn.call("LIMIT", "TOP", 2, "BY", "limited")]
        assert [(row["key"], row["limit"]) for row in rows] == [(f"limit:once:{noisy}", "Once"), (f"limit:once:{other}", "Once")]
        assert rows[0]["limited_per_s"] > rows[1]["limited_per_s"] > 0
        assert conn.call("LIMIT", "TOP", "BY", "limit") == Error("ERR syntax error, unexpected 'limit' (did you mean LIMITED?)")


def test_metrics_and_page(browser, weir):
    key = fresh()
    with weir.connect() as conn:
        decisions(conn, *[f"LIMIT CHECK once {key}"] * 3, *[f"LIMIT CHECK trial {key}"] * 3)
    wait_until(lambda: value(metrics(weir), "weir_named_limit_calls_total", limit="Once", result="limited") == 2, "it is counted")
    found = metrics(weir)
    for name, result, n in (("Once", "passed", 1), ("Once", "error", 0), ("trial", "shadow_limited", 1), ("_other", "passed", 0)):
        assert value(found, "weir_named_limit_calls_total", limit=name, result=result) == n
    assert value(found, "weir_named_limit_duration_seconds_count", limit="Once") == 3
    assert value(found, "weir_named_limit_duration_seconds_bucket", limit="Once", le="+Inf") == 3
    assert value(found, "weir_named_limit_info", limit="trial", algorithm="sliding", rates="2/100d, 9/200d", tz="", penalty="", over="shadow") == 1
    one = next(named for named in stats(weir)["named_limits"] if named["name"] == "trial")
    assert (one["passed"], one["shadow_limited"], one["over"]) == (2, 1, "shadow") and one["p99_seconds"] > 0
    page = page_of(browser, weir)
    rows = page.tables["named"]
    assert rows[1][:5] == ["Oncefixed 1/100d", "1", "2", "0", "0"]
    assert rows[2][:5] == ["trialsliding 2/100d, 9/200d, shadow", "2", "0", "1", "0"]
    assert key not in str(page) + get(weir, "/api/v1/stats")[2] + get(weir, "/metrics")[2]


def test_what_an_operator_sees_of_them(browser, weir):
    """The zone, the penalty, and how many keys have rates of their own, but not which keys."""
    keys = [fresh("vip"), fresh("vip")]
    for key in keys:
        assert order(weir, "SET", "LIMIT", "plan", "fixed", "=", "5/day", "FOR", key) == "OK"
    wait_until(lambda: value(metrics(weir), "weir_named_limit_overrides", limit="plan") == 2, "it is seen")
    found = metrics(weir)
    seen = {"algorithm": "fixed", "rates": "100/month", "tz": "Europe/Berlin", "penalty": "1m..1h", "over": "refuse"}
    assert value(found, "weir_named_limit_info", limit="plan", **seen) == 1
    assert value(found, "weir_named_limit_overrides", limit="Once") == value(found, "weir_named_limit_overrides", limit="_other") == 0
    one = next(named for named in stats(weir)["named_limits"] if named["name"] == "plan")
    assert seen.items() <= one.items() and one["overrides"] == 2
    rows = page_of(browser, weir).tables["named"]
    assert rows[4][0] == "planfixed 100/month, Europe/Berlin, penalty 1m..1h, 2 keys with other rates"
    assert not any(key in get(weir, "/metrics")[2] or key in str(one) for key in keys)
    assert order(weir, "UNSET", "LIMIT", "plan", "FOR", keys[0]) == "OK"
    wait_until(lambda: value(metrics(weir), "weir_named_limit_overrides", limit="plan") == 1, "it is seen")


def test_more_than_have_series_of_their_own(farm, redis):
    sections = "".join(f"[limit n{i}]\nfixed = 1/100d\n" for i in range(140))
    weir = farm.weir(redis, workers=1, sections=sections + LISTENING)
    with weir.connect() as conn:
        for i in range(140):
            decide(conn, f"LIMIT CHECK n{i} k")
    wait_until(lambda: value(metrics(weir), "weir_named_limit_calls_total", limit="_other", result="passed") == 12, "the others")


# ---- changes by operators ----


def test_set_limit_replaces_a_line_until_the_reload(weir):
    """Replaces a line until the next reload, also for existing keys. DIFF shows the change."""
    key = fresh()
    with weir.connect() as conn:
        assert [decide(conn, f"LIMIT CHECK once {key}").limited for _ in range(2)] == [0, 1]
        assert order(weir, "SET", "LIMIT", "once", "fixed", "=", "3/100d,", "9/200d") == "OK"
        assert [decide(conn, f"LIMIT CHECK once {key}").limited for _ in range(3)] == [0, 0, 1]
        assert order(weir, "SET", "limit", "ONCE", "over=shadow") == "OK"
        assert decide(conn, f"LIMIT CHECK once {key}").limited == 0
        assert listed(weir)["Once"]["rate"] == "3/100d, 9/200d"
        assert sorted(plain(order(weir, "DIFF")), key=lambda row: row["what"]) == [
            {"section": "limit once", "what": "fixed", "running": "3/100d, 9/200d", "file": "1/100d"},
            {"section": "limit once", "what": "over", "running": "shadow", "file": ""},
        ]
        wait_until(lambda: "[limit once] fixed = 3/100d, 9/200d (before: 1/100d)" in weir.log(), "it is told")
        assert order(weir, "SET", "LIMIT", "once", "sliding", "5/100d") == "OK", "the algorithm's line is replaced, whichever it was"
        assert {row["what"] for row in plain(order(weir, "DIFF"))} == {"sliding", "over", "fixed"}
        assert order(weir, "RELOAD") == "OK"
        wait_until(lambda: "dropped at the reload, because it was only SET: [limit once] over = shadow" in weir.log(), "it is told")
        assert decide(conn, f"LIMIT CHECK once {key}").limited == 1


@pytest.mark.parametrize("words, error", [
    ("onec fixed = 1/s", "ERR no limit is named onec (did you mean Once?)"),
    ("nothing fixed = 1/s", "ERR no limit is named nothing"),
    ("once fixed", "ERR write a key and its value, like sliding = 5/60s"),
    ("once fixed =", "ERR write a key and its value, like sliding = 5/60s"),
    ("once fixed = 0/s", "ERR [limit Once] fixed: a rate of 0 never lets anything pass: give at least 1"),
    ("once ovre = shadow", "ERR [limit Once] ovre: unknown key (did you mean over?)"),
    ("once fixd = 1/s", 'ERR [limit Once] fixd: unknown algorithm "fixd" (did you mean fixed?)'),
])  # fmt: skip
def test_set_limit_wrongly(kept, redis, words, error):
    weir = kept(workers=1, sections=SEEN + LISTENING)
    assert order(weir, "SET", "LIMIT", *words.split()) == Error(error)
    assert order(weir, "DIFF") == []


ALGORITHMS = {"funnel": "2/h burst 2", "bucket": "2/h burst 2", "sliding": "2/100d", "approx": "2/100d", "fixed": "2/100d"}


@pytest.mark.parametrize("before", ALGORITHMS)
def test_keys_begin_anew_when_a_limit_gets_another_algorithm(weir, redis, before):
    """Existing keys are reset once, on whichever worker; a PEEK deletes nothing."""
    conns = [weir.connect() for _ in range(4)]

    def become(algorithm):
        assert order(weir, "SET", "LIMIT", "once", algorithm, "=", *ALGORITHMS[algorithm].split()) == "OK"

    for after in ALGORITHMS:
        key = fresh()
        become(before)
        assert [decide(conn, f"LIMIT CHECK once {key}").limited for conn in conns] == [0, 0, 1, 1]
        become(after)
        if after == before:
            continue
        kept = redis.call("TYPE", f"limit:once:{key}"), redis.call("PTTL", f"limit:once:{key}") // 10**6
        assert decide(conns[0], f"LIMIT CHECK once {key} PEEK")[:3] == (0, 2, 2)
        assert decide(conns[0], f"LIMIT CHECK once {key} PEEK COST 3")[:4] == (1, 2, 2, -1)
        assert (redis.call("TYPE", f"limit:once:{key}"), redis.call("PTTL", f"limit:once:{key}") // 10**6) == kept
        for conn in conns:
            conn.send(pipeline(*[f"LIMIT CHECK once {key}"] * 5))
        found = [decision(conn.read()) for conn in conns for _ in range(5)]
        assert admitted(found) == 2, (before, after)
        wait_until(lambda after=after: f"changes to {after} from {before}: its keys start empty" in weir.log(), "it is told")
    for conn in conns:
        conn.close()


@pytest.mark.parametrize("after", ["bucket = 2/h", "fixed = 2/100d", "approx = 2/100d"])
@pytest.mark.parametrize("form", ["LIMIT CHECK turn {}", "LIMIT CHECK turn {} AND free {}"], ids=["one", "several"])
def test_another_algorithm_while_calls_wait(farm, redis, form, after):
    """Calls that wait since before the change do not use up the limit's new count."""
    sections = "[limit turn]\nsliding = 2/300ms\n[limit free]\nfunnel = 1g/s\n"
    weir = farm.weir(redis, workers=1, sections=sections + SEEN + LISTENING)
    key = fresh()
    form = form.format(key, key).split()
    conns = [weir.connect() for _ in range(20)]
    with weir.connect() as conn:
        assert [conn.call(*form)[0] for _ in range(2)] == [0, 0]
        for other in conns:
            other.send(pipeline([*form, "WAIT", 60_000]))
        assert order(weir, "SET", "LIMIT", "turn", *after.split()) == "OK"
        assert [conn.call(*form)[0] for _ in range(3)] == [0, 0, 1]
        found = [other.read() for other in conns]
        assert WRONGTYPE in found and all(reply == WRONGTYPE or reply[0] == 0 for reply in found)
        assert conn.call(*form)[0] == 1
    weir.wait_for_log("had the state of another algorithm and starts empty")
    assert weir.log().count("had the state of another algorithm and starts empty") == 1
    for other in conns:
        other.close()


def test_what_is_none_of_the_limits_stays(weir, redis):
    key = fresh()
    with weir.connect() as conn:
        assert conn.call("LIMIT", "ACQUIRE", f"once:{key}", 1, 100_000)[0] == 0
        redis.call("HSET", f"limit:trial:{key}", "a", "b")
        redis.call("SET", f"limit:queue:{key}", "apples: two")
        for name in ("once", "trial", "queue"):
            assert conn.call("LIMIT", "CHECK", name, key) == WRONGTYPE, name
            assert conn.call("LIMIT", "CHECK", name, key) == WRONGTYPE, name
        assert redis.call("EXISTS", *[f"limit:{name}:{key}" for name in ("once", "trial", "queue")]) == 3


# ---- rates of single keys ----


def test_rates_of_one_key(weir):
    """On every worker at once. Other keys keep the limit's rates. Counts stay."""
    key, other = fresh(), fresh()
    conns = [weir.connect() for _ in range(4)]
    assert [decide(conn, f"LIMIT CHECK once {key}").limited for conn in conns] == [0, 1, 1, 1]
    assert order(weir, "SET", "LIMIT", "once", "fixed", "=", "3/100d,", "9/200d", "FOR", key) == "OK"
    assert [decide(conn, f"LIMIT CHECK once {key}")[:3] for conn in conns] == [(0, 3, 1), (0, 3, 0), (1, 3, 0), (1, 3, 0)]
    assert [decide(conn, f"LIMIT CHECK once {other}").limited for conn in conns] == [0, 1, 1, 1]
    assert listed(weir)["Once"]["rate"] == "1/100d"
    assert listed(weir)["Once"]["overrides"] == [{"key": key, "rate": "3/100d, 9/200d", "ends_in_ms": -1}]
    assert plain(order(weir, "DIFF")) == [{"section": "limit once", "what": f"fixed for {key}", "running": "3/100d, 9/200d", "file": ""}]
    wait_until(lambda: f"[limit Once] fixed = 3/100d, 9/200d for {key} (before: none)" in weir.log(), "it is told")
    assert order(weir, "UNSET", "LIMIT", "ONCE", "for", key) == "OK"
    assert [decide(conn, f"LIMIT CHECK once {key}")[:3] for conn in conns] == [(1, 1, 0)] * 4
    assert order(weir, "DIFF") == [] and listed(weir)["Once"]["overrides"] == []
    for conn in conns:
        conn.close()


def test_rates_of_one_key_end(weir):
    key = fresh()
    with weir.connect() as conn:
        assert decide(conn, f"LIMIT CHECK once {key}").limited == 0
        assert order(weir, "SET", "LIMIT", "once", "fixed", "2/100d", "FOR", key, "EX", "700ms") == "OK"
        (row,) = listed(weir)["Once"]["overrides"]
        assert 0 < row["ends_in_ms"] <= 700
        assert decide(conn, f"LIMIT CHECK once {key} PEEK")[:3] == (0, 2, 1)
        wait_until(lambda: decide(conn, f"LIMIT CHECK once {key} PEEK")[:3] == (1, 1, 0), "they have ended")
        assert listed(weir)["Once"]["overrides"] == [] and order(weir, "DIFF") == []
        assert order(weir, "UNSET", "LIMIT", "once", "FOR", key) == Error(f"ERR limit Once has no rates for the key {key}")


def test_the_penalty_stays_beside_rates_of_single_keys(farm, redis):
    """Whatever changes in the rates of keys, also for another limit, every worker keeps the limit's
    penalty.
    """
    weir = farm.weir(redis, workers=2, sections=SEEN + "[limit pin]\nfixed = 1/100d\npenalty = 1h..200d\n" + LISTENING, identity="name, ip")
    conns = [weir.connect() for _ in range(4)]
    for name in ("once", "pin"):
        for i in range(3):
            key = fresh()
            assert order(weir, "SET", "LIMIT", name, "fixed", "=", "2/100d", "FOR", key) == "OK"
            assert order(weir, "SET", "LIMIT", name, "fixed", "=", "3/100d", "FOR", key, "EX", "1h") == "OK"
            assert [decide(conn, f"LIMIT CHECK {name} {key}").limited for conn in conns] == [0, 0, 0, 1]
            assert listed(weir)["pin"]["penalty"] == "1h..200d" and listed(weir)["Once"]["penalty"] == ""
            assert order(weir, "UNSET", "LIMIT", name, "FOR", key) == "OK"
    for conn in conns:
        conn.close()
    weir.stop()


def test_a_reload_and_rates_of_single_keys(weir):
    """Rates with an expiry stay until then. The others are dropped, and logged."""
    stays, goes = fresh(), fresh()
    with weir.connect() as conn:
        assert order(weir, "SET", "LIMIT", "trial", "sliding = 7/100d", "FOR", stays, "EX", "1h") == "OK"
        assert order(weir, "SET", "LIMIT", "trial", "sliding = 8/100d", "FOR", goes) == "OK"
        assert [decide(conn, f"LIMIT CHECK trial {key}").limit for key in (stays, goes)] == [7, 8]
        assert order(weir, "SET", "LIMIT", "trial", "sliding", "4/100d") == "OK", "another line leaves them"
        assert [decide(conn, f"LIMIT CHECK trial {key}").limit for key in (stays, goes)] == [7, 8]
        assert order(weir, "RELOAD") == "OK"
        assert [decide(conn, f"LIMIT CHECK trial {key}").limit for key in (stays, goes)] == [7, 2]
        told = f"dropped at the reload, because it was only SET: [limit trial] sliding = 8/100d for {goes}"
        wait_until(lambda: told in weir.log() and f"= 7/100d for {stays}, ends" in weir.log(), "it is told")
        assert f"7/100d for {stays}\n" not in weir.log()
        assert order(weir, "SET", "LIMIT", "trial", "fixed", "5/100d") == "OK", "rates of another algorithm are none of its keys'"
        wait_until(lambda: f"[limit trial] sliding = 7/100d for {stays}\n" in weir.log(), "it is told")
        assert decide(conn, f"LIMIT CHECK trial {stays}").limit == 5


@pytest.mark.parametrize("words, error", [
    ("SET LIMIT onec fixed = 1/s FOR k", "ERR no limit is named onec (did you mean Once?)"),
    ("SET LIMIT once sliding = 1/s FOR k", "ERR [limit Once] has the algorithm fixed, also for single keys: write fixed = 5/60s"),
    ("SET LIMIT once over = refuse FOR k", "ERR [limit Once] over: a single key takes only rates: write fixed = 5/60s"),
    ("SET LIMIT once fixed = 1/s FOR k EX soon",
     'ERR EX: "soon" is not a time: write ms, s, m, h or d, or a number of them (60s)'),
    ("SET LIMIT once fixed = 1/s FOR", "ERR syntax error, an argument is missing after 'FOR'"),
    ("SET LIMIT once FOR k", 'ERR [limit Once] FOR: unknown algorithm "FOR": write funnel, bucket, sliding, approx or fixed'),
    ("UNSET LIMIT onec FOR k", "ERR no limit is named onec (did you mean Once?)"),
    ("UNSET LIMIT once FOR k", "ERR limit Once has no rates for the key k"),
])  # fmt: skip
def test_rates_of_one_key_wrongly(kept, redis, words, error):
    weir = kept(workers=1, sections=SEEN + LISTENING)
    assert order(weir, *words.split()) == Error(error)
    assert order(weir, "DIFF") == []


def test_keys_that_are_called_as_the_words(farm, redis):
    weir = farm.weir(redis, workers=1, sections=SEEN + LISTENING)
    with weir.connect() as conn:
        for key, tail in (("EX", ["FOR", "EX"]), ("FOR", ["FOR", "FOR", "EX", "1h"]), ("a b", ["FOR", "a b"]), ("", ["FOR", ""])):
            assert order(weir, "SET", "LIMIT", "once", "fixed", "6/100d", *tail) == "OK"
            assert conn.call("LIMIT", "CHECK", "once", key, "PEEK")[1] == 6, key
            assert order(weir, "UNSET", "LIMIT", "once", "FOR", key) == "OK"
            assert conn.call("LIMIT", "CHECK", "once", key, "PEEK")[1] == 1, key
