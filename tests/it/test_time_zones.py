"""weir's calendar windows compared with Python's zoneinfo: the project's own sources as a library.
"""

import ctypes
import datetime
import functools
import os
import pathlib
import random
import subprocess
import zoneinfo

import pytest
from kit.harness import REPO, rounds

KINDS = {"day": 1, "week": 2, "month": 3}
BOUNDS = 5
UTC = datetime.timezone.utc
EPOCH = datetime.datetime(1970, 1, 1)
LONGEST_S = 27 * 3600  # no clock differs more from UTC

# Zones with clock changes across midnight, by half an hour, more than twice a year, or by a day;
# and some without changes.
HARD = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/El_Aaiun",
    "America/Asuncion",
    "America/Havana",
    "America/Nuuk",
    "America/Sao_Paulo",
    "America/St_Johns",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Asia/Tehran",
    "Australia/Lord_Howe",
    "Etc/GMT+12",
    "Europe/Berlin",
    "Europe/Dublin",
    "Pacific/Apia",
    "Pacific/Chatham",
    "Pacific/Kiritimati",
    "Pacific/Kwajalein",
]


class Slice(ctypes.Structure):
    _fields_ = [("at", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Zones:
    """zone_load, zone_offset and calendar_bounds."""

    def __init__(self, folder):
        path = folder / "zones.so"
        sources = [*(REPO / "src/base").glob("*.c"), REPO / "src/limit/policy/calendar.c"]
        flags = ["-std=gnu11", "-O1", "-shared", "-fPIC", "-D_GNU_SOURCE", "-pthread", f"-I{REPO}/src"]
        subprocess.run(["cc", *flags, "-o", path, *sources], check=True)
        self.lib = ctypes.CDLL(str(path))
        self.lib.zone_load.restype = ctypes.c_void_p
        self.lib.zone_load.argtypes = [Slice, ctypes.c_char_p, ctypes.c_size_t]
        self.lib.zone_put.argtypes = [ctypes.c_void_p]
        self.lib.zone_offset.argtypes = [ctypes.c_void_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_int64)]
        self.lib.zone_offset.restype = ctypes.c_int32
        self.lib.calendar_bounds.argtypes = [
            ctypes.c_int,
            ctypes.c_void_p,
            ctypes.c_int64,
            ctypes.POINTER(ctypes.c_int64),
        ]
        self.lib.calendar_bounds.restype = None
        self.known = {"UTC": None}

    def load(self, name):
        """Returns the zone, or the reason why there is none."""
        why = ctypes.create_string_buffer(200)
        zone = self.lib.zone_load(Slice(name.encode(), len(name.encode())), why, len(why))
        return zone or why.value.decode()

    def find(self, name):
        if name not in self.known:
            self.known[name] = self.load(name)
            assert isinstance(self.known[name], int), self.known[name]
        return self.known[name]

    def offset(self, name, t):
        until = ctypes.c_int64()
        return self.lib.zone_offset(self.find(name), t, until), until.value

    def bounds(self, name, kind, t):
        out = (ctypes.c_int64 * BOUNDS)()
        self.lib.calendar_bounds(KINDS[kind], self.find(name), t, out)
        return list(out)


@pytest.fixture(scope="module")
def zones(tmp_path_factory):
    return Zones(tmp_path_factory.mktemp("zones"))


# ---- the same results by zoneinfo ----


def offset(name, t):
    local = datetime.datetime.fromtimestamp(t, UTC).astimezone(zoneinfo.ZoneInfo(name))
    return int(local.utcoffset().total_seconds())


@functools.lru_cache(maxsize=None)
def first_at(name, shown):
    """Returns the first unix time at which the zone's clock shows `shown` seconds since 1970, or
    more. The search tries all times.
    """
    t = shown - LONGEST_S
    while t + offset(name, t) < shown:
        t += 300
    while t - 1 + offset(name, t - 1) >= shown:
        t -= 1
    back = t - 300  # no zone's clock changes forward and back within 300 s
    return t if t > back else back


def midnight_of(date):
    return int((datetime.datetime.combine(date, datetime.time()) - EPOCH).total_seconds())


def first_of(kind, date):
    if kind == "week":
        return date - datetime.timedelta(days=date.weekday())
    return date.replace(day=1) if kind == "month" else date


def moved(kind, date, by):
    if kind == "month":
        month = 12 * date.year + date.month - 1 + by
        return datetime.date(month // 12, month % 12 + 1, 1)
    return date + datetime.timedelta(days=by * (7 if kind == "week" else 1))


def bounds(name, kind, t):
    date = first_of(kind, (EPOCH + datetime.timedelta(seconds=t + offset(name, t))).date())
    begins = sorted({first_at(name, midnight_of(moved(kind, date, by))) for by in range(-3, 7)})
    here = max(i for i, begin in enumerate(begins) if begin <= t)
    return begins[here - 1 : here - 1 + BOUNDS]


# ---- tests ----


def turns(name, first, last):
    """Returns when the zone's clock changes, by trying each hour of some years."""
    t, found = first, []
    while t < last:
        if offset(name, t) != offset(name, t + 3600):
            found.append(next(s for s in range(t, t + 3600 + 1) if offset(name, s) != offset(name, t)))
        t += 3600
    return found


def year(number):
    return int(datetime.datetime(number, 1, 1, tzinfo=UTC).timestamp())


@pytest.mark.parametrize("name", HARD)
def test_bounds_around_turns(zones, name):
    """Times around every change of the clock: in the past, in the present, and after the end of any
    table.
    """
    rng = random.Random(name)
    for first in (rng.randrange(1975, 2020), 2024, 2051):
        for turn in turns(name, year(first), year(first + 1)):
            for t in [turn + d for d in (-86400, -1, 0, 1, 3599, 86400)] + [turn + rng.randrange(-90000, 90000)]:
                for kind in KINDS:
                    assert zones.bounds(name, kind, t) == bounds(name, kind, t), (name, kind, t)


def test_bounds_of_any_zone_are_right_anywhere_in_time(zones):
    """Any zone at any time."""
    rng = random.Random(13)
    names = sorted(n for n in zoneinfo.available_timezones() if n[0].isupper())
    for _ in range(rounds(100)):
        name, t = rng.choice(names), rng.randrange(year(1972), year(2100))
        for kind in KINDS:
            assert zones.bounds(name, kind, t) == bounds(name, kind, t), (name, kind, t)
        for near in zones.bounds(name, "day", t):
            for s in (near - 1, near):
                assert zones.bounds(name, "day", s) == bounds(name, "day", s), (name, s)


def test_offsets_are_those_of_the_systems_zones(zones):
    rng = random.Random(14)
    for name in sorted(n for n in zoneinfo.available_timezones() if n[0].isupper()):
        for _ in range(40):
            t = rng.randrange(year(1902), year(2200))
            here, until = zones.offset(name, t)
            assert here == offset(name, t), (name, t)
            if until < year(2300):
                assert until > t and offset(name, until - 1) == here, (name, t)


@pytest.mark.parametrize(
    "name, kind, t, wanted",
    [
        # The clock goes forward: 23 hours; and back: 25 hours.
        ("Europe/Berlin", "day", "2026-03-29 12:00", ("2026-03-28 23:00", "2026-03-29 22:00")),
        ("Europe/Berlin", "day", "2026-10-25 12:00", ("2026-10-24 22:00", "2026-10-25 23:00")),
        # There was no midnight: the day began at one.
        ("America/Sao_Paulo", "day", "2018-11-04 12:00", ("2018-11-04 03:00", "2018-11-05 02:00")),
        ("America/Havana", "day", "2026-03-08 12:00", ("2026-03-08 05:00", "2026-03-09 04:00")),
        # Midnight comes twice: the day begins at the first.
        ("America/Havana", "day", "2026-11-01 12:00", ("2026-11-01 04:00", "2026-11-02 05:00")),
        # One minute after midnight the clock went back to the day before, which had ended.
        ("America/St_Johns", "day", "2006-10-29 03:00", ("2006-10-29 02:30", "2006-10-30 03:30")),
        # half an hour
        ("Australia/Lord_Howe", "day", "2026-04-04 20:00", ("2026-04-04 13:00", "2026-04-05 13:30")),
        ("Asia/Kathmandu", "day", "2026-04-04 20:00", ("2026-04-04 18:15", "2026-04-05 18:15")),
        # December 30 was left out.
        ("Pacific/Apia", "day", "2011-12-30 09:00", ("2011-12-29 10:00", "2011-12-30 10:00")),
        ("Pacific/Apia", "day", "2011-12-30 10:00", ("2011-12-30 10:00", "2011-12-31 10:00")),
        ("UTC", "week", "2026-11-22 13:00", ("2026-11-16 00:00", "2026-11-23 00:00")),
        ("UTC", "month", "2028-02-29 23:59", ("2028-02-01 00:00", "2028-03-01 00:00")),
        ("Europe/Berlin", "month", "2026-03-31 22:00", ("2026-03-31 22:00", "2026-04-30 22:00")),
    ],
)
def test_known_days_and_months_have_their_bounds(zones, name, kind, t, wanted):
    def unix(text):
        return int(datetime.datetime.strptime(text, "%Y-%m-%d %H:%M").replace(tzinfo=UTC).timestamp())

    assert zones.bounds(name, kind, unix(t))[1:3] == [unix(text) for text in wanted]


@pytest.mark.parametrize(
    "name, why",
    [
        ("Europe/Berlln", 'unknown time zone "Europe/Berlln" (did you mean Europe/Berlin?)'),
        ("europe/berlin", 'unknown time zone "europe/berlin" (did you mean Europe/Berlin?)'),
        ("../etc/passwd", 'unknown time zone "../etc/passwd": write a name of the time zone database, like Europe/Berlin'),
        ("/etc/localtime", None),
        ("Europe/../Europe/Berlin", None),
        ("Europe/", None),
        ("Europe", None),
        ("right/Europe/Berlin", None),
        ("posixrules", None),
        ("", None),
        ("A" * 3000, None),
    ],
)
def test_an_unknown_zone_is_refused_by_name(zones, name, why):
    said = zones.load(name)
    assert isinstance(said, str) and said.startswith("unknown time zone ")
    assert why is None or said == why


def test_a_damaged_zone_file_is_an_error_that_names_it(zones, tmp_path):
    """Any file of the database is a zone, or an error that names the file."""
    rng = random.Random(15)
    found = [pathlib.Path(folder) for folder in zoneinfo.TZPATH if os.path.exists(f"{folder}/Etc/UTC")][0]
    good = [(found / name).read_bytes() for name in ("Europe/Berlin", "Africa/Casablanca", "Etc/UTC")]
    ctypes.CDLL(None).setenv(b"TZDIR", os.fsencode(tmp_path), 1)
    try:
        for i in range(600):
            bytes_ = bytearray(rng.choice(good))
            for _ in range(rng.choice((0, 1, 3))):
                bytes_[rng.randrange(len(bytes_))] = rng.randrange(256)
            if i % 3 == 0:
                del bytes_[rng.randrange(len(bytes_)) :]
            (tmp_path / "Zone").write_bytes(bytes_)
            said = zones.load("Zone")
            if isinstance(said, int):
                zones.known["Zone"] = said
                for kind in KINDS:
                    found = zones.bounds("Zone", kind, 1_790_000_000)
                    assert found[1] <= 1_790_000_000 < found[2] and found == sorted(set(found))
                zones.lib.zone_put(said)
            else:
                assert "Zone" in said
        (tmp_path / "Zone").unlink()
        assert zones.load("Zone") == f"{tmp_path} has no time zones: install the package tzdata"
    finally:
        ctypes.CDLL(None).unsetenv(b"TZDIR")
