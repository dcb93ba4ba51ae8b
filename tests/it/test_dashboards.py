"""The dashboard and the alerts in docs/: every panel has data, and every alert fires when it
should.
"""

import json
import re
import shutil
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import pytest
from kit.admin import ADMIN, admin_of
from kit.harness import REPO, Process, free_port, wait_until

ALERTS = REPO / "docs/prometheus/alerts.yml"
BOARD = json.loads((REPO / "docs/grafana/weir.json").read_text())
LIMITS = """
[policy default]
cmd.get = 5/s
cmd.set = 50/s burst 1 over delay 1s
cmd.incr = 1/s over shadow
"""
TARGET = 'instance="a",job="weir"'

# Samples of Prometheus, one a minute, and the alert that fires after an hour of them; "" is none.
SEEN = {
    "WeirDown": {"up": "0x60"},
    "UpstreamDown": {"weir_upstream_up{upstream='a'}": "0x60", "weir_upstream_master{upstream='a'}": "1x60"},
    "NoMaster": {"weir_upstream_has_master": "0x60"},
    "SlotsUnserved": {"weir_slots{state='up'}": "16383x60", "weir_slots{state='away'}": "0x60", "weir_slots{state='unserved'}": "1x60"},
    "ReplicaDown": {"weir_upstream_up{upstream='b'}": "0x60", "weir_upstream_master{upstream='b'}": "0x60"},
    "ReplicaLags": {"weir_upstream_lag_seconds": "6x60"},
    "UpstreamSlow": {"weir_upstream_oldest_seconds": "11x60"},
    "UpstreamErrors": {"weir_upstream_errors_total": "0+10x60"},
    "ReloadFailed": {"weir_config_last_reload_successful": "0x60"},
    "ThrottleSurge": {"weir_commands_total{result='throttled'}": "0+7x60", "weir_commands_total{result='x'}": "0+93x60"},
    "SubjectsFull": {"weir_subjects_overflowed": "1x60"},
    "LoopLag": {
        "weir_event_loop_lag_seconds_bucket{le='0.05'}": "0+90x60",
        "weir_event_loop_lag_seconds_bucket{le='0.1'}": "0+100x60",
        "weir_event_loop_lag_seconds_bucket{le='+Inf'}": "0+100x60",
    },
    "OverheadHigh": {
        "weir_proxy_overhead_seconds_bucket{le='0.01'}": "0+90x60",
        "weir_proxy_overhead_seconds_bucket{le='0.1'}": "0+100x60",
        "weir_proxy_overhead_seconds_bucket{le='+Inf'}": "0+100x60",
    },
    "ConnectionsNearLimit": {"weir_connections": "95x60", "weir_connections_limit": "100x60"},
    "ConnectionsRejected": {"weir_connections_rejected_total{reason='maxclients'}": "0+1x60"},
    "DescriptorsNearLimit": {"process_open_fds": "95x60", "process_max_fds": "100x60"},
    "AcceptErrors": {"weir_accept_errors_total": "0+1x60"},
    "MemoryShort": {"weir_memory_step": "2x60"},
    "SnapshotStale": {"weir_snapshot_timestamp_seconds": "0x60"},
    "LogLinesLost": {"weir_log_lines_lost_total": "0+1x60"},
    "": {
        "up": "1x60",
        "weir_upstream_up": "1x60",
        "weir_upstream_has_master": "1x60",
        "weir_slots{state='up'}": "16384x60",
        "weir_slots{state='away'}": "0x60",
        "weir_upstream_lag_seconds": "4x60",
        "weir_upstream_oldest_seconds": "9x60",
        "weir_upstream_errors_total": "1x60",
        "weir_config_last_reload_successful": "1x60",
        "weir_commands_total{result='throttled'}": "0+4x60",
        "weir_commands_total{result='x'}": "0+96x60",
        "weir_subjects_overflowed": "0x60",
        "weir_event_loop_lag_seconds_bucket{le='0.05'}": "0+100x60",
        "weir_event_loop_lag_seconds_bucket{le='+Inf'}": "0+100x60",
        "weir_connections": "80x60",
        "weir_connections_limit": "100x60",
        "weir_connections_rejected_total{reason='maxclients'}": "5x60",
        "weir_connections_rejected_total{reason='rate'}": "0+5x60",
        "process_open_fds": "80x60",
        "weir_accept_errors_total": "3x60",
        "weir_memory_step": "1x60",
        "process_max_fds": "100x60",
        "weir_snapshot_timestamp_seconds": "0+60x60",
        "weir_log_lines_lost_total": "3x60",
    },
}


def labelled(series):
    name, _, labels = series.partition("{")
    return f"{name}{{{TARGET}{',' + labels.rstrip('}') if labels else ''}}}"


def need(program):
    if not shutil.which(program):
        pytest.skip(f"{program} is not installed")


def test_alerts_come_when_they_should(tmp_path):
    need("promtool")
    names = re.findall(r"- alert: (\w+)", ALERTS.read_text())
    assert sorted(names) == sorted(set(SEEN) - {""})
    tests = []
    for alert, seen in SEEN.items():
        expected = [{"labels": f'{{alertname="{alert}"}}', "value": 1}] if alert else []
        check = {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "60m", "exp_samples": expected}
        series = [{"series": labelled(name), "values": values} for name, values in seen.items()]
        tests.append({"interval": "1m", "input_series": series, "promql_expr_test": [check]})
    file = tmp_path / "test.yml"
    file.write_text(json.dumps({"rule_files": [str(ALERTS)], "evaluation_interval": "1m", "tests": tests}))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


class Prometheus(Process):
    """Scrapes one weir once a second."""

    def __init__(self, weir):
        super().__init__("prometheus")
        self.port = free_port()
        scrape = {"job_name": "weir", "static_configs": [{"targets": ["%s:%d" % admin_of(weir)]}]}
        config = {
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [scrape],
        }
        (self.folder / "prometheus.yml").write_text(json.dumps(config))

    def start(self):
        where = f"--web.listen-address=127.0.0.1:{self.port}"
        self.launch(["prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", "--log.level=warn", where])

    def ask(self, path, **arguments):
        """Returns None while there is no answer."""
        url = f"http://127.0.0.1:{self.port}{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return answer.read()
        except OSError:
            return None

    def query(self, expression):
        answer = self.ask("/api/v1/query", query=expression)
        return json.loads(answer)["data"]["result"] if answer else []


@pytest.fixture
def load():
    """Keeps a weir busy, so each of its limits has work."""
    is_over = threading.Event()
    threads = []

    def start(weir):
        def run():
            with weir.connect() as conn:
                while not is_over.wait(0.05):
                    conn.ask("GET a", "GET a", "GET a", "SET a 1", "SET a 1", "INCR n", "INCR n", "INCR n")

        threads.append(threading.Thread(target=run))
        threads[-1].start()

    yield start
    is_over.set()
    for thread in threads:
        thread.join()


def panels():
    for panel in BOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def filled(expression):
    """Returns the expression as Grafana fills it in."""
    text = expression.replace("$__rate_interval", "10s").replace('="$rule"', '="default/cmd.get"')
    return re.sub(r"\$(instance|job|rule)", ".*", text)


def test_every_panel_shows_something(farm, redis, load):
    need("prometheus")
    weir = farm.weir(redis, sections=LIMITS + ADMIN)
    prometheus = farm._start(Prometheus(weir))
    load(weir)
    wait_until(lambda: prometheus.ask("/-/ready") or not prometheus.is_running(), "prometheus is ready", 60)
    assert prometheus.is_running(), prometheus.log()
    asked = [(title, expression) for title, expression in panels() if "memory_limit" not in expression]
    assert len(asked) > 30
    for title, expression in asked:
        wait_until(lambda: prometheus.query(filled(expression)), f"{title}: {filled(expression)}", 60)
    for variable in BOARD["templating"]["list"][1:]:
        series = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["definition"])
        assert all(series[2] in row["metric"] for row in prometheus.query(filled(series[1]))), variable["name"]
    rules = json.loads(prometheus.ask("/api/v1/rules"))["data"]["groups"][0]["rules"]
    assert all(rule["health"] != "err" for rule in rules), rules
