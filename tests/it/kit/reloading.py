"""Changes weir's configuration file while weir runs."""

import signal

from kit.harness import wait_until

RELOADED = "configuration reloaded from"
NOT_RELOADED = "configuration not reloaded"


def outcomes(weir):
    log = weir.log()
    return log.count(RELOADED), log.count(NOT_RELOADED)


def own_settings(weir):
    """Returns the current [weir] section: that of the test's start, or its replacement."""
    if not hasattr(weir, "own_settings"):
        weir.own_settings = weir.config.read_text().split("\n[")[0] + "\n"
    return weir.own_settings


def reload(weir, text, **settings):
    """Rewrites the file, its [weir] section first, and sends SIGHUP. True if the file was accepted.
    """
    lines = "".join(f"{key.replace('_', '-')} = {value}\n" for key, value in settings.items())
    weir.config.write_text(own_settings(weir) + lines + text)
    return signal_reload(weir)


def signal_reload(weir):
    before = outcomes(weir)
    weir.signal(signal.SIGHUP)
    wait_until(lambda: outcomes(weir) != before or not weir.is_running(), "the reload has an outcome", 20)
    assert weir.is_running(), weir.log()
    return outcomes(weir)[0] > before[0]
