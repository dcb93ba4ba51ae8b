"""The measured cells and the goals, as rows."""

from dataclasses import dataclass

from rig import KEYS, SIZES, Load

CLIENTS = (1, 50, 500)
PIPELINES = (1, 16, 64)
# bytes of values requested at a time; a larger cell measures memory, and is left out
UNDER_WAY_MAX = 256 << 20

BEST_PEER = "best peer"
SHORT_LIVES = "connect, PING, QUIT c50"
SHORTER_LIVES = "connect, PING c50"  # nutcracker does not answer QUIT


@dataclass(frozen=True)
class Cell:
    name: str
    load: Load
    also: tuple = ()  # variants of weir, beside the standard weir
    is_quick: bool = False
    share: float = 0  # part of the slowest proxy's rate, as an open loop; 0: as fast as possible


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
    yield Cell(SHORT_LIVES, Load(("PING", "+", "QUIT"), 50, flags=("-C",)), (), True)
    yield Cell(SHORTER_LIVES, Load(("PING",), 50, flags=("-C",)))


def partly_loaded(percent):
    return f"GET 16 B c50 P1 at {percent} %"


def by_redis_benchmark(pipeline):
    return f"GET 16 B c50 P{pipeline} by redis-benchmark"


def half_load_cells():
    """A proxy in production is seldom fully loaded, and seldom gets large batches."""
    for percent in (60, 30):
        yield Cell(partly_loaded(percent), get(16, 50, 1), (), True, percent / 100)
    for pipeline in (1, 16):
        load = Load(("GET", "get16:__rand_int__"), 50, pipeline, 16, KEYS[16], driver="redis-benchmark")
        yield Cell(by_redis_benchmark(pipeline), load, (), pipeline == 1)


CELLS = (*plain_cells(), *odd_cells(), *half_load_cells())


# ---- goals ----


@dataclass(frozen=True)
class Goal:
    """The figure `what` of one endpoint in a cell, divided by that of `versus` in the same round,
    against a bound. If `versus` is None, the figure is not divided."""

    cell: str
    what: str
    versus: str
    sign: str  # "<=", ">=" or "<"
    bound: float
    who: str = "weir"


def small(where, what, versus, sign, bound, **more):
    return Goal(f"GET 16 B {where}", what, versus, sign, bound, **more)


# The main goals. bench/figures.py shows these goals, with figures measured elsewhere.
HEADLINES = (
    small("c50 P1", "proxy_us", "nutcracker", "<=", 0.70),
    Goal(partly_loaded(60), "proxy_us", "nutcracker", "<=", 0.75),
    Goal(partly_loaded(30), "proxy_us", "nutcracker", "<=", 0.80),
    small("c50 P16", "proxy_us", "haproxy", "<=", 0.70),
    small("c50 P16", "ops_s", "haproxy", ">=", 1.1),
    Goal(SHORT_LIVES, "ops_s", "nutcracker", ">=", 1.0),
    Goal(SHORT_LIVES, "proxy_us", "nutcracker", "<=", 1.1),
    Goal("SET 1 MiB c50 P1", "proxy_us", "haproxy", "<=", 0.5),
    Goal("SET 1 MiB c50 P1", "ops_s", "haproxy", ">=", 1.2),
    Goal("GET 1 MiB c50 P1", "proxy_us", "haproxy", "<=", 0.5),
    Goal("GET 1 MiB c50 P1", "ops_s", "haproxy", ">=", 1.2),
    Goal("SET 64 KiB c50 P1", "ops_s", BEST_PEER, ">=", 1.2),
    small("c50 P16", "proxy_us", "weir, no limits", "<=", 1.03),
    small("c50 P64", "proxy_us", "weir, no limits", "<=", 1.05),
    small("c50 P16", "proxy_us", "weir", "<=", 0.6, who="weir, all refused"),
    small("c50 P16", "ops_s", "weir", ">=", 2.5, who="weir, all refused"),
)
IDLE_HEADLINES = (
    Goal("idle", "idle", None, "<=", 448),
    Goal("idle", "after one SET and GET", None, "<=", 450),
)

GOALS = (
    *HEADLINES,
    small("c50 P1", "ops_s", "nutcracker", ">=", 1.1),
    small("c50 P1", "calls", None, "<=", 2.5),
    small("c50 P1", "redis_us", "direct", "<=", 0.6),
    small("c500 P1", "proxy_us", "nutcracker", "<=", 0.70),
    small("c500 P1", "ops_s", "nutcracker", ">=", 1.0),
    small("c1 P1", "calls", None, "<=", 6),
    small("c1 P1", "p50_us", BEST_PEER, "<=", 1.05),
    small("c50 P16", "proxy_us", "nutcracker", "<=", 0.17),
    small("c50 P64", "proxy_us", "nutcracker", "<=", 0.08),
    small("c50 P64", "ops_s", "nutcracker", ">=", 4),
    small("c50 P64", "proxy_busy", None, "<", 0.5),
    small("c500 P16", "ops_s", "haproxy", ">=", 1.0),
    Goal("GET 64 KiB c50 P1", "proxy_us", BEST_PEER, "<=", 0.75),
    Goal("GET 64 KiB c50 P1", "ops_s", BEST_PEER, ">=", 1.15),
    Goal("SET 64 KiB c50 P1", "proxy_us", BEST_PEER, "<=", 0.75),
    small("c50 P16", "reached", None, "<=", 0.001, who="weir, all refused"),
    Goal("instructions", "GET 16 B c50 P64", None, "<=", 600),
    Goal("gate", "one funnel take / bare compare-and-swap", None, "<=", 1.5),
    Goal("gate", "ns of three limits", None, "<=", 60),
    Goal("gate", "a refusal / a pass, three limits", None, "<", 1.0),
    Goal("gate", "a refusal / a pass, one limit", None, "<", 1.0),
    *IDLE_HEADLINES,
    small("c50 P16", "proxy_us", "haproxy, TLS", "<=", 1.1, who="weir, TLS"),
    small("c50 P1", "proxy_us", "weir", "<=", 1.10, who="weir, two workers"),
    small("c50 P16", "proxy_us", "weir", "<=", 1.10, who="weir, two workers"),
)
