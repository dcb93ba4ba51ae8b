"""Ratios of figures of one round, the agreement of rounds, and tables of ratios."""

import statistics

from cells import BEST_PEER, GOALS

DISAGREE = 1.25  # greatest / least; a ratio with a larger quotient is not printed
FIGURES = {  # figure -> (as printed, true if more is better)
    "ops_s": ("throughput", True),
    "p50_us": ("p50", False),
    "p99_us": ("p99", False),
    "proxy_us": ("CPU", False),
    "redis_us": ("Redis CPU", False),
    "calls": ("system calls", False),
    "proxy_busy": ("core busy", False),
    "reached": ("commands that reach Redis", False),
}
SHOWN = ("ops_s", "p50_us", "p99_us", "proxy_us", "redis_us")


def is_peer(name):
    return name != "direct" and name.split(",")[0] != "weir"


class Ratio:
    """One number for each round."""

    def __init__(self, values):
        self.values = values

    def __bool__(self):
        return bool(self.values)

    @property
    def median(self):
        return statistics.median(self.values)

    @property
    def agrees(self):
        return bool(self.values) and max(self.values) <= DISAGREE * min(self.values)

    @property
    def spread(self):
        return f"{short(min(self.values))}-{short(max(self.values))}"

    def __str__(self):
        if not self.values:
            return "-"
        return f"{short(self.median)} ({self.spread})" if self.agrees else "disagree"


def short(value):
    """The value with three significant digits."""
    if value >= 1e6:
        return f"{value / 1e6:.2f}M"
    if value >= 1e5:
        return f"{value / 1e3:.0f}k"
    if value >= 1e4:
        return f"{value / 1e3:.1f}k"
    digits = next((digits for least, digits in ((100, 0), (10, 1), (0.1, 2)) if value >= least), 3)
    return f"{value:.{digits}f}"


def median(samples, what):
    values = [sample[what] for sample in samples if sample.get(what) is not None]
    return statistics.median(values) if values else None


def best(samples, what):
    values = [sample[what] for sample in samples if sample.get(what) is not None]
    return (max if FIGURES[what][1] else min)(values) if values else None


def ratio(cell, what, who, versus):
    """cell: endpoint -> its samples, one for each round."""
    mine = cell.get(who, [])
    if versus is None:
        return Ratio([sample[what] for sample in mine if sample.get(what) is not None])
    if versus == BEST_PEER:
        theirs = [best(samples, what) for samples in zip(*(s for name, s in cell.items() if is_peer(name) and s))]
    else:
        theirs = [sample.get(what) for sample in cell.get(versus, [])]
    return Ratio([a[what] / b for a, b in zip(mine, theirs) if a.get(what) is not None and b])


def cell_agrees(cell):
    """True if the rounds agree on throughput and CPU against every other endpoint."""
    others = [name for name in cell if name != "weir" and cell[name]]
    ratios = [ratio(cell, what, "weir", name) for name in others for what in ("ops_s", "proxy_us", "redis_us")]
    return all(one.agrees for one in ratios if one)


def goals_agree(cell, goals):
    """True if the rounds agree on the goals of the cell."""
    values = [ratio(cell, goal.what, goal.who, goal.versus) for goal in goals if goal.versus]
    return all(value.agrees for value in values if value)


# ---- on the terminal ----


def show_cell(name, cell):
    heads = ("ops/s", "p50 us", "p99 us", "proxy us", "redis us")
    print(f"\n{name}")
    print(f"  {'':22}{''.join(f'{head:>10}' for head in heads)}  weir / it: ops; p50; p99; CPU; Redis CPU")
    for endpoint, samples in cell.items():
        if not samples:
            print(f"  {endpoint:22}{'cannot':>10}")
            continue
        figures = [median(samples, what) for what in SHOWN]
        line = f"  {endpoint:22}" + "".join(f"{'-' if value is None else short(value):>10}" for value in figures)
        if endpoint != "weir":
            line += "  " + "; ".join(str(ratio(cell, what, "weir", endpoint)) for what in SHOWN)
        print(line)
    samples = [sample for samples in cell.values() for sample in samples]
    if any(sample["rate"] for sample in samples):
        rate, late = median(samples, "rate"), median(samples, "late_us")
        print(f"  {short(rate)} requests a second were due; 1 % were sent more than {short(late)} us late (medians)")
    others, waited = (statistics.median(sample[what] for sample in samples) for what in ("others", "waited"))
    if others > 0.1:
        noise = f"other work had {others:.1f} processors, and Redis and the proxy waited"
        print(f"  noise: {noise} {waited:.0%} of its time for their cores (medians)", flush=True)


# ---- figures to reach ----


def goal_value(results, goal):
    """A Ratio; of one value where there are no rounds."""
    if goal.cell in results.get("cells", {}) and goal.what != "calls":
        return ratio(results["cells"][goal.cell], goal.what, goal.who, goal.versus)
    if goal.what == "calls":
        value = results.get("calls", {}).get(goal.cell, {}).get(goal.who)
    elif goal.cell == "idle":
        value = results.get("idle", {}).get("weir", {}).get(goal.what)
    else:
        value = results.get(goal.cell, {}).get(goal.what)
    return Ratio([] if value is None else [value])


def is_reached(goal, value):
    value = round(value, 2 if value >= 0.1 else 4)  # as the value is shown
    return {"<=": value <= goal.bound, ">=": value >= goal.bound, "<": value < goal.bound}[goal.sign]


def goal_row(results, goal):
    value = goal_value(results, goal)
    what = FIGURES.get(goal.what, (goal.what,))[0]
    asked = f"{what}{f' / {goal.versus}' if goal.versus else ''} {goal.sign} {goal.bound:g}"
    where = goal.cell if goal.who == "weir" else f"{goal.cell}: {goal.who}"
    if not value:
        return where, asked, "", "not measured"
    # Values near 0 have no ratio that could agree.
    if goal.versus and not value.agrees:
        return where, asked, "disagree", "not known"
    shown = str(value) if goal.versus else short(value.median)
    return where, asked, shown, "reached" if is_reached(goal, value.median) else "NOT reached"


def goal_rows(results):
    return [goal_row(results, goal) for goal in GOALS]


def show_goals(results):
    print("\nFigures to reach")
    for where, asked, shown, verdict in goal_rows(results):
        print(f"  {where:44} {asked:44} {shown:22} {verdict}")


# ---- for docs/performance.md ----


def table(head, rows):
    lines = [f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def absolute(samples):
    if not samples:
        return "-"
    return "; ".join(short(value) for what in SHOWN if (value := median(samples, what)) is not None)


def ratio_pair(cell, other):
    """Throughput and CPU of weir against another endpoint. CPU is the proxy's, or Redis' for
    `direct`."""
    cpu = "redis_us" if other == "direct" else "proxy_us"
    return f"{ratio(cell, 'ops_s', 'weir', other)}; {ratio(cell, cpu, 'weir', other)}"


def ratio_table(cells, others):
    rows = [[name, *(ratio_pair(cell, other) for other in others)] for name, cell in cells.items()]
    return (
        "### weir divided by others\n\nThroughput; CPU per request of the proxies (beside `direct`: of Redis). The "
        f"median of the rounds' ratios, the least and the greatest; `disagree` where they are more than {DISAGREE:g} apart.\n\n"
        + table(["cell", *others], rows)
    )


def absolute_table(cells, plain):
    rows = [[name, *(absolute(cell.get(endpoint)) for endpoint in plain)] for name, cell in cells.items()]
    return (
        "### Absolute\n\nOperations per second; p50; p99; CPU per request of the proxy; of Redis. Times in us, medians "
        "of the rounds. They belong to this machine.\n\n" + table(["cell", *plain], rows)
    )


def variant_table(cells):
    rows = [
        [name, endpoint, absolute(samples), str(ratio(cell, "proxy_us", endpoint, "weir"))]
        for name, cell in cells.items()
        for endpoint, samples in cell.items()
        if is_variant(endpoint)
    ]
    return "### Otherwise\n\n" + table(["cell", "", "as above", "CPU / weir's"], rows) if rows else ""


def is_variant(name):
    return name.startswith("weir,") or " -" in name


def counted_tables(results, plain):
    if results.get("calls"):
        rows = [[name, *(short(by[p]) if p in by else "-" for p in plain)] for name, by in results["calls"].items()]
        how = results["meta"]["counter"]
        head = f"### System calls per GET\n\nCounted with {how}; `direct` is Redis itself.\n\n"
        yield head + table(["cell", *plain], rows)
    if results.get("idle"):
        whats = list(next(iter(results["idle"].values())))
        rows = [[name, *(f"{by[what]:.0f}" for what in whats)] for name, by in results["idle"].items()]
        yield "### Bytes of memory for each of 9,500 connections\n\n" + table(["", *whats], rows)


def markdown(results):
    meta, cells = results["meta"], results["cells"]
    plain = [name for name in dict.fromkeys(name for cell in cells.values() for name in cell) if not is_variant(name)]
    parts = [
        f"Measured on {meta['date']} with {meta['versions']}; {meta['machine']}. {meta['rounds']} rounds of "
        f"{meta['seconds']} s; {meta['cores']}. The machine's load before it began: {meta['load']}.",
        "### Figures to reach\n\n" + table(["where", "asked", "measured", ""], goal_rows(results)),
        ratio_table(cells, [name for name in plain if name != "weir"]),
        absolute_table(cells, plain),
        variant_table(cells),
        *counted_tables(results, plain),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"
