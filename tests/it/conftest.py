"""Fixtures: servers shared by the tests of a run, servers of one test, and their logs beside a failure."""

import harness
import pytest
from harness import MODE_IDS, MODES, Farm

LOG_LINES = 200


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
    """weir in every mode in front of the shared Redis, each started when it is first asked for."""
    started = {}

    def weir(mode):
        if mode not in started:
            workers, lanes = mode
            started[mode] = shared_farm.weir(shared_redis, workers=workers, lanes=lanes)
        return started[mode]

    return weir


@pytest.fixture
def redis(shared_redis):
    """The shared Redis, empty."""
    shared_redis.forget_data()
    return shared_redis


@pytest.fixture(params=MODES, ids=MODE_IDS)
def weir(request, redis, shared_weirs):
    """A weir without limits in front of `redis`, in every mode."""
    return shared_weirs(request.param)


@pytest.fixture
def farm():
    """Servers of one test."""
    farm = Farm()
    yield farm
    farm.close()


@pytest.fixture(autouse=True)
def servers_live():
    """A shared weir that died or complained fails the test that did it, not a later one."""
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
