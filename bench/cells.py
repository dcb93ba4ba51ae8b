"""What is measured: the cells, and the figures to reach, as rows."""

from dataclasses import dataclass

from rig import KEYS, SIZES, Load

CLIENTS = (1, 50, 500)
PIPELINES = (1, 16, 64)
UNDER_WAY_MAX = 256 << 20  # bytes of values asked for at a time: what is beyond it measures memory, and is left out

BEST_PEER = "best peer"


@dataclass(frozen=True)
class Cell:
    name: str
    load: Load
    also: tuple = ()  # variants of weir beside the ordinary ones
    is_quick: bool = False


def reply_length(size):
    return len(f"${size}\r\n") + size + 2


REFUSED = {"weir, all refused": 1.0}


def get(size, clients, pipeline, **more):
    words = ("GET", f"get{size}:{{k}}")
    return Load(words, clients, pipeline, size, KEYS[size], errors=REFUSED, reply_bytes=reply_length(size), **more)


def set_(size, clients, pipeline):
    return Load(("SET", f"set{size}:{{k}}", "{v}"), clients, pipeline, size, KEYS[size], reply_bytes=len("+OK\r\n"))


LOADS = {"GET": get, "SET": set_}


QUIET = "nutcracker -v 4"
ALSO = {
    "GET 16 B c50 P1": (QUIET, "weir, no limits", "weir, all refused", "weir, two workers"),
    "GET 16 B c50 P16": ("weir, TLS", "haproxy, TLS", QUIET, "weir, no limits", "weir, all refused", "weir, two workers"),
    "GET 16 B c50 P64": (QUIET, "weir, no limits"),
    "GET 16 B c500 P16": ("weir, two workers",),
}
QUICK = {
    *(f"GET 16 B {where}" for where in ("c1 P1", "c50 P1", "c500 P1", "c50 P16", "c50 P64", "c500 P16")),
    *(f"{verb} {size} c50 P1" for verb in ("GET", "SET") for size in ("64 KiB", "1 MiB")),
}


def plain_cells():
    for label, size in SIZES.items():
        for verb in ("GET", "SET"):
            for clients in CLIENTS:
                for pipeline in PIPELINES:
                    if clients * pipeline * size > UNDER_WAY_MAX:
                        continue
                    name = f"{verb} {label} c{clients} P{pipeline}"
                    load = LOADS[verb](size, clients, pipeline)
                    yield Cell(name, load, ALSO.get(name, ()), name in QUICK)


def odd_cells():
    mixed = ("GET", "get16:{k}", "+", "SET", "set16:{k}", "{v}")
    for pipeline in (1, 16):
        load = Load(mixed, 50, pipeline, errors={"weir, writes refused": 0.5})
        yield Cell(f"GET and SET 16 B c50 P{pipeline}", load, ("weir, writes refused",), pipeline == 16)
    for pipeline in (1, 16):
        yield Cell(f"RESP3 GET 16 B c50 P{pipeline}", get(16, 50, pipeline, flags=("-3",)))
    yield Cell("connect, PING, QUIT c50", Load(("PING", "+", "QUIT"), 50, flags=("-C",)), (), True)


CELLS = (*plain_cells(), *odd_cells())


# ---- what is to be reached ----


@dataclass(frozen=True)
class Goal:
    """who's `what` in a cell, divided by that of `versus` in the same round (nothing: as it is), against a bound."""

    cell: str
    what: str
    versus: str
    sign: str  # "<=", ">=" or "<"
    bound: float
    who: str = "weir"


def small(where, what, versus, sign, bound, **more):
    return Goal(f"GET 16 B {where}", what, versus, sign, bound, **more)


def large(size):
    for verb in ("GET", "SET"):
        yield Goal(f"{verb} {size} c50 P1", "proxy_us", BEST_PEER, "<=", 0.75)
        yield Goal(f"{verb} {size} c50 P1", "ops_s", BEST_PEER, ">=", 1.15)


GOALS = (
    small("c50 P1", "proxy_us", "nutcracker", "<=", 0.70),
    small("c50 P1", "ops_s", "nutcracker", ">=", 1.1),
    small("c50 P1", "calls", None, "<=", 2.5),
    small("c50 P1", "redis_us", "direct", "<=", 0.6),
    small("c500 P1", "proxy_us", "nutcracker", "<=", 0.70),
    small("c500 P1", "ops_s", "nutcracker", ">=", 1.0),
    small("c1 P1", "calls", None, "<=", 6),
    small("c1 P1", "p50_us", BEST_PEER, "<=", 1.05),
    small("c50 P16", "proxy_us", "haproxy", "<=", 0.75),
    small("c50 P16", "proxy_us", "nutcracker", "<=", 0.17),
    small("c50 P16", "ops_s", "haproxy", ">=", 1.0),
    small("c50 P64", "proxy_us", "nutcracker", "<=", 0.08),
    small("c50 P64", "ops_s", "nutcracker", ">=", 4),
    small("c50 P64", "proxy_busy", None, "<", 0.5),
    small("c500 P16", "ops_s", "haproxy", ">=", 1.0),
    *large("64 KiB"),
    *large("1 MiB"),
    small("c50 P16", "proxy_us", "weir", "<=", 0.6, who="weir, all refused"),
    small("c50 P16", "reached", None, "<=", 0.001, who="weir, all refused"),
    small("c50 P16", "proxy_us", "weir, no limits", "<=", 1.05),
    small("c50 P64", "proxy_us", "weir, no limits", "<=", 1.10),
    Goal("instructions", "GET 16 B c50 P64", None, "<=", 600),
    Goal("gate", "one funnel take / bare compare-and-swap", None, "<=", 1.5),
    Goal("gate", "ns of three limits", None, "<=", 60),
    Goal("gate", "a refusal / a pass, three limits", None, "<", 1.0),
    Goal("gate", "a refusal / a pass, one limit", None, "<", 1.0),
    Goal("idle", "idle", None, "<=", 450),
    Goal("idle", "after one SET and GET", None, "<=", 600),
    small("c50 P16", "proxy_us", "haproxy, TLS", "<=", 1.1, who="weir, TLS"),
    small("c50 P1", "proxy_us", "weir", "<=", 1.10, who="weir, two workers"),
    small("c50 P16", "proxy_us", "weir", "<=", 1.10, who="weir, two workers"),
)
