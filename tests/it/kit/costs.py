"""A pytest plugin (SLOW=n make it): lists the n tests with the most processor time, and the n tests
that wait longest.

Processor time is that of the test's process and of its children that ended during the test. Servers
that tests share count for the last test. All other time of a test is waiting, or was used by other
processes.
"""

import os
import resource
import time

import pytest

N = int(os.environ.get("SLOW", 30))
NAME = "cost"
# (processor seconds, processor seconds of children among them, seconds of waiting, test)
costs = []


def used(who):
    found = resource.getrusage(who)
    return found.ru_utime + found.ru_stime


def meters():
    return used(resource.RUSAGE_SELF), used(resource.RUSAGE_CHILDREN), time.monotonic()


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    item.begins = meters()
    yield


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    if call.when == "teardown":
        item.user_properties.append((NAME, [end - begin for begin, end in zip(item.begins, meters())]))
    yield


def pytest_runtest_logreport(report):
    found = dict(report.user_properties).get(NAME)
    if found:
        own, children, seconds = found
        costs.append((own + children, children, max(0, seconds - own - children), report.nodeid))


def pytest_terminal_summary(terminalreporter):
    for title, column in (("processor time", 0), ("waiting", 2)):
        terminalreporter.section(f"most {title}, of {sum(cost[column] for cost in costs):.0f} s in all")
        terminalreporter.line("processor s  (children)  waiting s  test")
        for cost in sorted(costs, key=lambda cost: -cost[column])[:N]:
            terminalreporter.line("%11.2f  %10.2f  %9.2f  %s" % cost)
