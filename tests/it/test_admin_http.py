"""HTTP for operators: metrics, health and statistics, read by real clients beside slow ones."""

import csv
import io
import json
import re
import shutil
import socket
import statistics
import subprocess
import time

import pytest
from kit.admin import ADMIN, admin_of, get
from kit.harness import REPO, free_port, run_weir, wait_until

LIMITS = """
[policy default]
cmd.get = 3/m, 1000/h
cmd.set = 10/s burst 1 over delay 1s
cmd.incr = 1/m over shadow
cmd.append = deny
"""
SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def ask_raw(weir, data, seconds=5):
    with socket.create_connection(admin_of(weir), seconds) as sock:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        found = b""
        while piece := sock.recv(65536):
            found += piece
        return found


def parse(text):
    """Returns {(name, labels): value} of a text that must be well-formed in every line."""
    types, helped, found = {}, set(), {}
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name = line.split()[2]
            assert name not in helped and len(line.split()) > 3, line
            helped.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name in helped and name not in types and kind in ("counter", "gauge", "histogram"), line
            assert (kind == "counter") == name.endswith("_total"), line
            types[name] = kind
        else:
            match = SAMPLE.fullmatch(line)
            assert match, line
            name, labels, value = match.groups()
            family = re.sub(r"_(bucket|sum|count)$", "", name)
            assert types.get(name) or types.get(family) == "histogram", line
            assert name.startswith(list(types)[-1]), f"{line}: not under its own metric"
            key = (name, frozenset(LABEL.findall(labels or "")))
            assert key not in found, f"twice: {line}"
            found[key] = float(value)
    assert set(types) == helped
    return found


def metrics(weir):
    status, headers, body = get(weir, "/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return parse(body)


def value(found, name, **labels):
    return found[name, frozenset((key.rstrip("_"), text) for key, text in labels.items())]


def wait_metric(weir, expected, name, **labels):
    wait_until(lambda: value(metrics(weir), name, **labels) == expected, f"{name} {labels} is {expected}", 15)


@pytest.fixture
def weir(farm, redis):
    return farm.weir(redis, sections=LIMITS + ADMIN, identity="user, ip")


def test_metrics_are_well_formed_and_documented(weir):
    found = metrics(weir)
    body = get(weir, "/metrics")[2]
    families = set(re.findall(r"^# TYPE (\S+)", body, re.M))
    assert families == set(re.findall(r"^\| `([a-z_]+)` \|", (REPO / "docs/metrics.md").read_text(), re.M))
    assert value(found, "weir_workers") == 2
    assert value(found, "process_open_fds") > 5
    assert abs(value(found, "process_start_time_seconds") - time.time()) < 60
    if shutil.which("promtool"):
        done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0 and not done.stdout + done.stderr, done.stdout + done.stderr


def test_one_metric_alone(weir):
    assert set(parse(get(weir, "/metrics?name=weir_ready")[2])) == {("weir_ready", frozenset())}
    assert get(weir, "/metrics?name=nix")[2] == ""


def test_commands_are_counted_once_and_all_series_are_there_from_the_start(weir):
    before = metrics(weir)
    with weir.connect() as conn:
        for _ in range(5):
            conn.call("GET", "x")
        conn.ask("SET x 1", "SET x 2", "INCR x", "INCR x", "APPEND x y", "NOSUCH", "MULTI", "EXEC", "ECHO hi")
        conn.ask("LIMIT STATUS", "LIMIT NIX", "EVAL 'return 1' 0", "PUBLISH a b", "PING")
        wait_metric(weir, 1, "weir_commands_total", class_="pubsub", result="forwarded")
        wait_metric(weir, 1, "weir_connections", listener="127.0.0.1:0")
    after = metrics(weir)
    assert set(before) == set(after)

    def commands(class_, result):
        return value(after, "weir_commands_total", class_=class_, result=result)

    assert commands("read", "forwarded") == 3 and commands("read", "throttled") == 2
    assert commands("write", "forwarded") == 2 and commands("write", "delayed") == 1
    assert commands("write", "shadow") == 1 and commands("write", "throttled") == 1
    assert commands("tx", "forwarded") == 2 and commands("script", "forwarded") == 1
    assert commands("control", "forwarded") >= 1 and commands("control", "local") == 1
    assert commands("other", "error") == 1  # LIMIT NIX; NOSUCH is Redis' error
    assert commands("other", "forwarded") == 1
    total = sum(n for (name, _), n in after.items() if name == "weir_commands_total")
    assert total == 5 + 9 + 5

    def decisions(rule, decision):
        return value(after, "weir_decisions_total", rule=rule, decision=decision)

    assert decisions("default/cmd.get", "allowed") == 3 and decisions("default/cmd.get", "throttled") == 2
    assert decisions("default/cmd.get#2", "throttled") == 0
    assert decisions("default/cmd.set", "delayed") == 1 and decisions("default/cmd.incr", "shadow_throttled") == 1
    assert value(after, "weir_rule_rate", rule="default/cmd.set") == 10
    assert value(after, "weir_throttle_delay_seconds_count") == 1
    assert value(after, "weir_limit_commands_total", subcommand="status", result="ok") == 1
    assert value(after, "weir_limit_commands_total", subcommand="unknown", result="error") == 1


def test_connections_are_counted_to_their_end(farm, redis):
    weir = farm.weir(redis, sections=ADMIN, max_clients=2)
    listener = {"listener": "127.0.0.1:0"}
    one, two = weir.connect(), weir.connect()
    assert one.call("PING") and two.call("PING")
    with weir.connect() as third:
        assert b"max number of clients" in third.sock.recv(100)
    wait_metric(weir, 1, "weir_connections_rejected_total", reason="maxclients", **listener)
    wait_metric(weir, 2, "weir_connections", **listener)
    one.close()
    two.sock.sendall(b"*1\r\n:1\r\n")
    wait_metric(weir, 1, "weir_connections_closed_total", reason="protocol", **listener)
    wait_metric(weir, 1, "weir_connections_closed_total", reason="client", **listener)
    found = metrics(weir)
    assert value(found, "weir_connections", **listener) == 0
    assert value(found, "weir_connections_accepted_total", **listener) == 3
    assert value(found, "weir_protocol_errors_total", side="client", reason="bulk_missing") == 1
    two.close()


def test_bytes_and_upstream_connections(weir, redis):
    with weir.connect() as conn:
        conn.call("SET", "big", "x" * 100_000)
        conn.call("GET", "big")
    upstream = {"upstream": redis.upstream}
    wait_until(lambda: value(metrics(weir), "weir_net_output_bytes_total", side="client") > 100_000, "bytes out")
    found = metrics(weir)
    for name in ("weir_net_input_bytes_total", "weir_net_output_bytes_total"):
        for side in ("client", "upstream"):
            assert 100_000 < value(found, name, side=side) < 3_000_000
    assert value(found, "weir_upstream_up", **upstream) == 1
    assert value(found, "weir_upstream_connections", state="shared", **upstream) == 2


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_readiness_follows_the_upstream(farm, lanes):
    redis = farm.redis()
    weir = farm.weir(redis, sections=ADMIN, lanes=lanes)
    wait_until(lambda: get(weir, "/readyz")[::2] == (200, "ready\n"), "ready")
    if lanes == "shared":  # the server does not close a connection that is still being opened
        wait_metric(weir, 2, "weir_upstream_connections", upstream=redis.upstream, state="shared")
    redis.kill()
    wait_until(lambda: get(weir, "/readyz")[::2] == (503, f"upstream {redis.upstream} is away\n"), "not ready")
    assert get(weir, "/healthz")[::2] == (200, "ok\n")
    assert value(metrics(weir), "weir_upstream_up", upstream=redis.upstream) == 0
    redis.start()
    wait_until(lambda: get(weir, "/readyz")[0] == 200, "ready again", 20)
    if lanes == "shared":
        assert value(metrics(weir), "weir_upstream_errors_total", upstream=redis.upstream, reason="closed") >= 1


def check_still_ready(weir, redis):
    """weir's control connection has failed. Clients are served all the same, until Redis is killed.
    """
    lost = re.compile("the control connection failed|cannot be served|does not accept (upstream-user|the password)")
    wait_until(lambda: lost.search(weir.log()), "control connection lost")
    wait_until(lambda: get(weir, "/readyz")[0] == 200, "ready without it")
    assert value(metrics(weir), "weir_upstream_up", upstream=redis.upstream) == 1
    with weir.connect() as conn:
        assert conn.call("SET", "k", "v") == "OK"
    redis.kill()
    wait_until(lambda: get(weir, "/readyz")[0] == 503, "not ready")
    assert value(metrics(weir), "weir_upstream_up", upstream=redis.upstream) == 0


def test_ready_while_clients_are_served_though_weirs_own_user_is_gone(farm, tmp_path):
    redis = farm.redis()
    redis.call("ACL", "SETUSER", "weir", "on", ">old", "~*", "&*", "+@all")
    password = tmp_path / "password"
    password.write_text("old\n")
    password.chmod(0o600)
    weir = farm.weir(redis, workers=1, upstream_user="weir", upstream_password_file=password, sections=ADMIN)
    with weir.connect() as conn:
        assert conn.call("SET", "k", "v") == "OK"
        redis.call("ACL", "DELUSER", "weir")
        check_still_ready(weir, redis)


def test_ready_while_clients_are_served_though_redis_takes_no_more_connections(farm):
    redis = farm.redis()
    weir = farm.weir(redis, workers=1, sections=ADMIN)
    with redis.connect() as own, weir.connect() as conn:
        assert conn.call("SET", "k", "v") == "OK"
        listed = own.call("CLIENT", "LIST").splitlines()
        control = listed[0]  # the first connection is weir's control connection
        assert own.call("CONFIG", "SET", "maxclients", "1") == "OK"
        own.call("CLIENT", "KILL", "ID", control.split()[0][3:])
        check_still_ready(weir, redis)


def test_readiness_without_an_upstream_from_the_start(farm):
    weir = farm.weir(f"127.0.0.1:{free_port()}", sections=ADMIN)
    status, _, body = get(weir, "/readyz")
    assert status == 503 and "is away" in body


def test_reloads_are_counted(weir):
    good = weir.config.read_text()
    weir.config.write_text("[weir]\nnix = 1\n")
    weir.signal(1)
    wait_metric(weir, 1, "weir_config_reloads_total", result="failure")
    assert value(metrics(weir), "weir_config_last_reload_successful") == 0
    weir.config.write_text(good)
    weir.signal(1)
    wait_metric(weir, 1, "weir_config_reloads_total", result="success")
    assert value(metrics(weir), "weir_config_last_reload_successful") == 1


def test_what_clients_say_is_in_no_label_and_escaped_elsewhere(farm, redis):
    weir = farm.weir(redis, sections=ADMIN + "[policy default]\ncmd.get = 1/m\n", identity="name, ip")
    with weir.connect() as conn:
        conn.ask("CLIENT SETNAME <script>alert('\"x\"')</script>")
        conn.ask("GET secretkey", "GET secretkey", "NOSUCHCOMMAND")

        def is_seen():
            text = get(weir, "/api/v1/stats")[2]
            rows = json.loads(text)["top"]["refused"]
            return text if rows else None

        text = wait_until(is_seen, "the subject is in the statistics")
    assert "<script>" not in text and "script" in text and "secretkey" not in text
    body = get(weir, "/metrics")[2]
    assert "script>" not in body and "secretkey" not in body and "NOSUCHCOMMAND" not in body.upper()


def test_stats_in_json_and_csv(weir, redis):
    status, headers, body = get(weir, "/api/v1/stats")
    stats = json.loads(body)
    assert status == 200 and headers["Content-Type"] == "application/json"
    assert stats["ready"] is True and stats["upstream"]["address"] == redis.upstream
    [node] = stats["upstream"].pop("nodes")
    assert (node.pop("why"), node.pop("lacks")) == ("", [])
    assert (node.pop("in_use"), node.pop("role")) == (redis.upstream, "master")
    assert (node.pop("use"), node.pop("epoch")) == ("all", 0) and node.pop("changed_ms") > 0
    assert node.pop("addresses") == [{"address": redis.upstream, "why": ""}]
    assert node == {name: stats["upstream"][name] for name in node} and {"up", "connections", "errors"} < set(node)
    assert [limit["rule"] for limit in stats["limits"]][:2] == ["default/cmd.get", "default/cmd.get#2"]
    assert stats["limits"][0]["amount"] == "3/m" and stats["limits"][0]["burst"] == 3
    status, headers, body = get(weir, "/api/v1/stats?format=csv")
    rows = list(csv.DictReader(io.StringIO(body)))
    assert headers["Content-Type"].startswith("text/csv")
    assert {row["metric"] for row in rows} == {name for name, _ in metrics(weir)}
    assert all(float(row["value"]) >= 0 for row in rows)


def test_other_methods_and_paths(weir):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "NIX"):
        status, headers, _ = get(weir, "/metrics", method, b"x" * 100 if method == "POST" else None)
        assert status == 405 and headers["Allow"] == "GET, HEAD"
    for path in ("/nix", "/metrics/", "//", "/../etc/passwd"):
        assert get(weir, path)[0] in (400, 404), path
    status, headers, body = get(weir, "/metrics", "HEAD")
    assert status == 200 and body == "" and int(headers["Content-Length"]) > 1000
    for path in ("/metrics", "/healthz", "/nix"):
        headers = get(weir, path)[1]
        assert headers["Cache-Control"] == "no-store" and headers["Connection"] == "close"


def status_for(weir, host, path="/metrics", version="1.1"):
    line = f"Host: {host}\r\n" if host is not None else ""
    answer = ask_raw(weir, f"GET {path} HTTP/{version}\r\n{line}\r\n".encode())
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2].decode()


def test_only_known_hosts_are_answered(farm, redis):
    """A foreign name may resolve to weir's address; requests from a foreign page carry that name.
    """
    weir = farm.weir(redis, sections=ADMIN + "host = weir, ops.example\n")
    port = admin_of(weir)[1]
    for path in ("/", "/page.js", "/page.css", "/metrics", "/healthz", "/readyz", "/api/v1/stats"):
        for host in ("127.0.0.1", f"127.0.0.1:{port}", "[::1]:9380", "LOCALHOST:1", "weir", "Ops.Example.:443"):
            assert status_for(weir, host, path)[0] == 200, host
        for host in ("evil.example", f"evil.example:{port}", "localhost.evil.example", "weir.evil.example", "::1"):
            status, body = status_for(weir, host, path)
            assert status == 421 and "[admin]" in body and "host" in body and "weir_" not in body, host
    assert status_for(weir, None, version="1.0")[0] == 200
    assert status_for(weir, "evil.example", version="1.0")[0] == 421
    assert status_for(weir, "evil.example", "/nix")[0] == 421


def test_without_names_addresses_are_answered(weir):
    assert status_for(weir, "127.0.0.1")[0] == status_for(weir, "localhost")[0] == 200
    assert status_for(weir, "weir")[0] == 421


def test_bad_requests_harm_nobody(weir):
    head = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
    bad = [
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        head + b"X: " + b"a" * 100_000 + b"\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n",
        b"\x00\xff" * 1000,
        b"*1\r\n$4\r\nPING\r\n",
        b"",
    ]
    for data in bad:
        try:
            answer = ask_raw(weir, data, 1)
        except OSError:
            continue
        assert b" 200 " not in answer[:20], data[:40]
    assert b" 200 " in ask_raw(weir, head + b"\r\n")[:20]


def crowd(weir, n, data):
    socks = []
    for _ in range(n):
        sock = socket.create_connection(admin_of(weir), 5)
        sock.sendall(data)
        socks.append(sock)
    return socks


def test_slow_ones_hold_up_neither_scrapers_nor_clients(weir):
    """More connections than allowed, each of which sends a byte now and then, or never reads."""
    socks = crowd(weir, 100, b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX-Slow: ")
    socks += crowd(weir, 50, b"GET /api/v1/stats HTTP/1.1\r\nHost: localhost\r\n\r\n")

    def drip():
        for sock in socks:
            try:
                sock.send(b"a")
            except OSError:
                pass

    took = []
    with weir.connect() as conn:
        for _ in range(5):
            drip()
            began = time.monotonic()
            assert conn.call("PING")
            took.append(time.monotonic() - began)
            assert get(weir, "/healthz")[0] == 200
    assert statistics.median(took) < 1 and max(took) < 5, took
    for sock in socks:
        sock.close()
    assert metrics(weir)


def test_a_connection_has_its_time(weir):
    with socket.create_connection(admin_of(weir), 20) as sock:
        began = time.monotonic()
        sock.sendall(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: ")
        sock.settimeout(0.5)
        while True:
            try:
                sock.send(b"a")
                if not sock.recv(1000):
                    break
            except TimeoutError:
                assert time.monotonic() - began < 15
            except OSError:
                break
        assert time.monotonic() - began > 5


def test_nothing_is_served_that_is_not_configured(farm, redis):
    weir = farm.weir(redis)
    assert "http://" not in weir.log()


def test_an_address_that_cannot_be_had(farm, redis, tmp_path):
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen()
        path = tmp_path / "weir.conf"
        port = sock.getsockname()[1]
        path.write_text(f"[weir]\nlisten = 127.0.0.1:0\nupstream = {redis.upstream}\n[admin]\nlisten = 127.0.0.1:{port}\n")
        done = run_weir("-c", path)
        assert done.returncode == 2
        assert f"cannot listen on 127.0.0.1:{port}: the address is in use: set listen= in [admin]" in done.stderr
    path.write_text("[admin]\nlisten = unix:/tmp/x\n")
    assert "[admin] listen: HTTP needs host:port" in run_weir("-t", "-c", path).stderr


def test_who_is_near_a_limit(farm, redis):
    """More than 80 % of ten is nine or ten."""
    weir = farm.weir(redis, sections="[policy default]\ncmd.get = 10/d\ncmd.set = 5/d\n" + ADMIN)
    assert value(metrics(weir), "weir_near_limit_total", rule="_other") == 0
    with weir.connect() as conn:
        for _ in range(12):
            conn.call("GET", "x")
        for _ in range(4):
            conn.call("SET", "x", 1)
    wait_metric(weir, 2, "weir_decisions_total", rule="default/cmd.get", decision="throttled")
    found = metrics(weir)
    assert value(found, "weir_near_limit_total", rule="default/cmd.get") == 2
    assert value(found, "weir_near_limit_total", rule="default/cmd.set") == 0


@pytest.mark.parametrize("lanes", ["shared", "private"])
def test_who_listens_and_who_blocks(farm, redis, lanes):
    weir = farm.weir(redis, sections=ADMIN, lanes=lanes)
    upstream = {"upstream": redis.upstream}
    with weir.connect() as listener, weir.connect() as blocked, weir.connect() as leaver:
        listener.ask("SUBSCRIBE a", "PSUBSCRIBE b*")
        leaver.ask("SUBSCRIBE a")
        blocked.send(b"BLPOP nothing 0\r\n")
        wait_metric(weir, 2, "weir_upstream_subscribed_connections", **upstream)
        wait_metric(weir, 1, "weir_upstream_blocking_requests", **upstream)
        leaver.close()
        wait_metric(weir, 1, "weir_upstream_subscribed_connections", **upstream)
        listener.ask("UNSUBSCRIBE a")
        assert redis.call("RPUSH", "nothing", "x") == 1
        wait_metric(weir, 0, "weir_upstream_blocking_requests", **upstream)
        assert value(metrics(weir), "weir_upstream_subscribed_connections", **upstream) == 1
        listener.ask("PUNSUBSCRIBE b*")
        wait_metric(weir, 0, "weir_upstream_subscribed_connections", **upstream)


def test_pauses_of_slow_readers_are_counted(farm, redis):
    """A slow client stops the upstream; a slow upstream stops a client."""
    weir = farm.weir(redis, sections=ADMIN)

    def pauses(side):
        return value(metrics(weir), "weir_backpressure_pauses_total", side=side)

    redis.call("SET", "big", "x" * (30 << 20))
    with weir.connect(timeout=60) as reader:
        reader.send(b"GET big\r\n")
        wait_until(lambda: pauses("upstream") > 0, "the upstream waits", 20)
        assert len(reader.read()) == 30 << 20
    before = pauses("client")
    with weir.connect(timeout=60) as writer, redis.connect() as direct:
        assert writer.call("PING") == "PONG"
        direct.send(b"DEBUG SLEEP 1\r\n")
        assert writer.call("SET", "big", "y" * (30 << 20)) == "OK"
    wait_until(lambda: pauses("client") > before, "the client has waited", 20)
