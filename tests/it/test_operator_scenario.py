"""An operator's day in one story: a tenant is throttled, Redis goes away, the limit is reloaded,
weir is upgraded and stopped.
"""

import re
import signal
import threading

import pytest
from kit.admin import get, limit_of, stats
from kit.browser import page_of
from kit.harness import REPO, TOLD_AT_ONCE, wait_until
from kit.reloading import reload
from kit.resp import Closed, Conn, Error

ADMIN = "[admin]\nlisten = 127.0.0.1:0\nsocket = {folder}/admin.sock\n"
POLICY = "[policy noisy]\nmatch = name:noisy\nread = %s\n" + ADMIN
TENANT = "name:noisy"
LIMIT = "noisy/read"


class Tenant(threading.Thread):
    """A client that sends without a pause, accepts refusals, and reconnects when it is closed."""

    def __init__(self, weir):
        super().__init__()
        self.weir = weir
        self.is_over = threading.Event()
        self.passed = self.refused = self.told = 0
        self.wrong = []

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.join(30)
        assert not self.is_alive()

    def run(self):
        try:
            while not self.is_over.is_set():
                with self.weir.connect() as conn:
                    self.ask(conn)
        except Exception as error:  # a connection refused or reset, or a wrong reply
            self.wrong.append(repr(error))

    def ask(self, conn):
        try:
            conn.call("CLIENT", "SETNAME", "noisy")
            while not self.is_over.is_set():
                self.note(conn.call("GET", "key"))
        except Closed:
            return

    def note(self, reply):
        if reply == b"value":
            self.passed += 1
        elif isinstance(reply, Error) and reply.startswith("THROTTLED "):
            self.refused += 1
        elif isinstance(reply, Error) and reply.startswith("UPSTREAM "):
            self.told += 1
        else:
            raise AssertionError(reply)

    def goes_on(self, what, n=20):
        before = getattr(self, what)
        wait_until(lambda: getattr(self, what) >= before + n or self.wrong, f"it is {what}", 20)
        assert not self.wrong


@pytest.fixture
def own_redis(farm):
    redis = farm.redis()
    redis.call("SET", "key", "value")
    return redis


def metric(weir, name):
    return {float(value) for value in re.findall(rf"^{name}(?:{{.*}})? (\S+)$", get(weir, "/metrics")[2], re.M)}


def runbook(alert):
    """Returns the runbook's section on an existing alert."""
    alerts = (REPO / "docs/prometheus/alerts.yml").read_text()
    assert re.search(rf"- alert: {alert}\b", alerts)
    section = re.search(rf"^###? {alert}$(.*?)^##", (REPO / "docs/operations.md").read_text(), re.M | re.S)
    return section[1].strip()


def test_a_day_of_an_operator(browser, farm, own_redis):
    weir = farm.weir(own_redis, sections=POLICY % "20/s burst 5", identity="name, ip", drain_timeout="15s", workers=2, **TOLD_AT_ONCE)
    with Tenant(weir) as tenant:
        # the throttled tenant and the reason: on the page, in the statistics, at the console
        tenant.goes_on("refused")
        wait_until(lambda: limit_of(stats(weir), LIMIT)["state"] == "refusing", "the limit shows in colour")
        page = page_of(browser, weir)
        assert LIMIT in page.tables["limits"][1][0] and page.tables["top-refused"][1][0] == TENANT
        with Conn(str(weir.folder / "admin.sock")) as console:
            assert TENANT.encode() in console.call("LIMIT", "TOP", 1, "BY", "refused")[0]
            console.call("LIMIT", "FORGIVE", TENANT)
        tenant.goes_on("passed", 5)

        # Redis is away: clients get an error, the alert's metric shows it, the runbook has a
        # section; Redis returns
        own_redis.kill()
        tenant.goes_on("told", 5)
        wait_until(lambda: metric(weir, "weir_upstream_up") == {0.0}, "the alert's condition holds")
        assert get(weir, "/readyz")[0] == 503 and get(weir, "/healthz")[0] == 200
        assert runbook("UpstreamDown")
        own_redis.start()
        own_redis.call("SET", "key", "value")
        wait_until(lambda: get(weir, "/readyz")[0] == 200, "weir is ready again", 20)
        tenant.goes_on("passed", 5)

        # a higher limit for the tenant, without a restart; a mistake in the file changes nothing,
        # and shows
        assert not reload(weir, POLICY % "20/fortnight")
        wait_until(lambda: metric(weir, "weir_config_last_reload_successful") == {0.0}, "it shows")
        assert reload(weir, (POLICY % "1m/s burst 1m").replace("{folder}", str(weir.folder)))
        tenant.goes_on("passed", 100)
        refused = tenant.refused
        tenant.goes_on("passed", 100)
        assert tenant.refused == refused

        # another process takes over; the tenant sees a connection close between two commands
        weir.upgrade()
        tenant.goes_on("passed", 200)
        assert weir.serves()
        assert not tenant.wrong

    # stop
    weir.signal(signal.SIGTERM)
    assert weir.wait() == 0, weir.log()
    assert not weir.complaint(), weir.log()
