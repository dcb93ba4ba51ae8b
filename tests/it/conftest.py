"""Fixtures: servers shared by the tests of a run, servers of one test, and their logs in a failure
report.
"""

import fcntl
import gc
import shutil
import subprocess

from kit import harness
import pytest
from kit.browser import Browser
from kit.decisions import speaking
from kit.harness import MODE_IDS, MODES, NODE_SOURCES, REPO, Farm
from kit.limits import USERS

LOG_LINES = 200
NODE_BUILD = REPO / "build" / "node"


@pytest.fixture(scope="session")
def shared_farm():
    farm = Farm()
    yield farm
    farm.close()


@pytest.fixture(scope="session")
def shared_redis(shared_farm):
    return shared_farm.redis()


@pytest.fixture(scope="session")
def shared_weirs(shared_farm, shared_redis):
    """One weir in every mode in front of the shared Redis. Each weir starts at its first use."""
    started = {}

    def weir(mode):
        if mode not in started:
            workers, lanes = mode
            started[mode] = shared_farm.weir(shared_redis, workers=workers, lanes=lanes)
        return started[mode]

    return weir


@pytest.fixture(scope="module")
def kept(shared_redis):
    """Returns a function that starts a weir for the tests of a module: one for each upstream and
    set of settings.
    """
    farm, started = Farm(), {}

    def weir(upstream=shared_redis, **settings):
        key = (upstream, *sorted(settings.items()))
        if key not in started:
            started[key] = farm.weir(upstream, **settings)
        return started[key]

    yield weir
    farm.close()


@pytest.fixture
def redis(shared_redis):
    """The shared Redis, emptied."""
    shared_redis.forget_data()
    return shared_redis


@pytest.fixture(params=MODES, ids=MODE_IDS)
def weir(request, redis, shared_weirs):
    """A weir without limits in front of `redis`, in every mode."""
    return shared_weirs(request.param)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def limited(request, farm, redis):
    """Returns a function that starts a weir of the test's own with the given sections, in every
    mode.
    """
    workers, lanes = request.param
    return lambda sections, **settings: farm.weir(redis, sections=sections, workers=workers, lanes=lanes, **settings)


@pytest.fixture(params=MODES, ids=MODE_IDS)
def kept_limited(request, kept, redis):
    """Starts a weir with the sections given, in every mode; or returns the weir that another test of
    the module started with these sections.
    """
    workers, lanes = request.param
    return lambda sections, **settings: kept(sections=sections, workers=workers, lanes=lanes, **settings)


@pytest.fixture(params=[2, 3], ids=["resp2", "resp3"])
def protocol(request):
    """The RESP version that the client speaks."""
    return request.param


@pytest.fixture
def conn(weir, protocol):
    """A client of `weir`."""
    with speaking(weir.connect(), protocol) as conn:
        yield conn


@pytest.fixture
def two_weirs(redis, shared_weirs):
    """Two weirs in front of one Redis."""
    return [shared_weirs(mode) for mode in ((1, "shared"), (2, "private"))]


@pytest.fixture
def users(redis):
    """ACL users of the shared Redis, with the password pw."""
    for name in USERS:
        redis.call("ACL", "SETUSER", name, "on", ">pw", "~*", "&*", "+@all")
    yield USERS
    redis.call("ACL", "DELUSER", *USERS)


@pytest.fixture(scope="module")
def chromium():
    browser = Browser()
    yield browser
    browser.close()


@pytest.fixture
def browser(chromium):
    """A browser without an open page and without recorded complaints."""
    yield chromium
    chromium.leave()


@pytest.fixture
def farm():
    """Servers of one test."""
    farm = Farm()
    yield farm
    farm.close()


def installed(sources, build):
    """The packages of a package-lock.json, installed once for all test processes and runs."""
    if not shutil.which("node") or not shutil.which("npm"):
        pytest.skip("node and npm are not installed")
    build.mkdir(parents=True, exist_ok=True)
    with open(build / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        wanted = (sources / "package-lock.json").read_text()
        stamp = build / "installed"
        if not stamp.exists() or stamp.read_text() != wanted:
            for name in ("package.json", "package-lock.json"):
                shutil.copy(sources / name, build / name)
            argv = ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"]
            done = subprocess.run(argv, cwd=build, capture_output=True, text=True, timeout=120)
            if done.returncode:
                pytest.skip("npm cannot install the packages (is the registry there?): " + done.stderr.strip()[-300:])
            stamp.write_text(wanted)
    return build / "node_modules"


@pytest.fixture(scope="session")
def node_modules():
    return installed(NODE_SOURCES, NODE_BUILD)


@pytest.fixture(scope="session")
def moves_modules():
    """The modules with tests that are marked `moves`."""
    return installed(NODE_SOURCES / "moves", REPO / "build" / "node-moves")


# Collected tests live until the end of the run, so the garbage collector need not visit them.
gc.disable()


def pytest_collection_finish():
    gc.freeze()
    gc.enable()


def has_mode(item):
    return hasattr(item, "callspec") and any(value in MODES for value in item.callspec.params.values())


def pytest_configure(config):
    config.addinivalue_line("markers", "moves: runs in `make test-moves` only")
    config.addinivalue_line("markers", "failover: runs in `make test-failover` only")
    config.addinivalue_line("markers", "cluster: runs in `make test-cluster` only")


def pytest_collection_modifyitems(config, items):
    """A run with a mark has the tests of that mark alone. The long run has the tests with a mode,
    in the modes that `make test` leaves out.
    """
    wanted = [
        {mark.name for mark in item.iter_markers()} & {"moves", "failover", "cluster"} == harness.MARK
        and (has_mode(item) or harness.MARK or not harness.IS_LONG)
        for item in items
    ]
    config.hook.pytest_deselected(items=[item for item, is_wanted in zip(items, wanted) if not is_wanted])
    items[:] = [item for item, is_wanted in zip(items, wanted) if is_wanted]


@pytest.fixture(autouse=True)
def servers_live():
    """A shared weir that died or complained fails the test that caused it, not a later one."""
    harness.ended.clear()
    yield
    for server in list(harness.running):
        if isinstance(server, harness.Weir):
            assert server.is_running(), "weir died\n" + server.log()
            assert not server.complaint(), server.log()


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    outcome = yield
    report = outcome.get_result()
    if report.failed:
        for server in harness.running + harness.ended:
            lines = server.log().splitlines()[-LOG_LINES:]
            report.sections.append((f"{server.name} {server.child.pid}", "\n".join(lines)))
