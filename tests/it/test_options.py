"""The options of LIMIT commands, end to end: what each does to the reply and to what is stored."""

import pytest
from decisions import FIELDS, PLACE_FIELDS, decide, decision, decisions, fresh, written
from limits import plain


# ---- the form of the reply ----


def test_one_form_in_both_protocols(conn, protocol):
    for command in ("LIMIT FUNNEL {} 5/h", "LIMIT BUCKET {} 5/h 9/d", "LIMIT SLIDING {} 5/h", "LIMIT SLIDING {} 5/h APPROX", "LIMIT FIXED {} 5/d"):
        key = fresh()
        as_array, as_map = (conn.call(*f"{command.format(key)} AS {form}".split()) for form in ("ARRAY", "map"))
        assert as_array[:4] == [0, 5, 4, -1] and len(as_array) == 5
        flat = as_map if protocol == 2 else [one for pair in as_map.items() for one in pair]
        assert isinstance(as_map, dict) == (protocol == 3)
        assert plain(flat[::2]) == FIELDS and flat[1:8:2] == [0, 5, 3, -1]
        assert isinstance(conn.call(*command.format(key).split()), dict) == (protocol == 3), "of the protocol without it"


def test_one_form_of_a_place(conn, protocol):
    key = fresh()
    held = conn.call(*f"LIMIT ACQUIRE {key} 2 5000 AS ARRAY".split())
    assert held[0] == 0 and held[2:4] == [1, 2]
    named = conn.call(*f"LIMIT ACQUIRE {key} 2 5000 AS MAP WAIT 10".split())
    flat = named if protocol == 2 else [one for pair in named.items() for one in pair]
    assert plain(flat[::2]) == PLACE_FIELDS and flat[1] == 0 and flat[5:8:2] == [2, 2]


def test_equal_calls_of_several_forms(conn, protocol):
    """They travel as one, and each has its own."""
    key = fresh()
    replies = conn.ask(*[f"LIMIT FUNNEL {key} 2/h {form}" for form in ("AS MAP", "AS ARRAY", "AS MAP", "")])
    named = replies[::2] if protocol == 3 else [dict(zip(reply[::2], reply[1::2])) for reply in replies[::2]]
    assert [reply[b"limited"] for reply in named] == [0, 1]
    assert replies[1][0] == 0 and decision(replies[3]).limited == 1


# ---- COST 0 ----

ALGORITHMS = ["FUNNEL {} 3/d", "BUCKET {} 3/d 5/d", "SLIDING {} 3/d", "SLIDING {} 3/d APPROX", "FIXED {} 3/d"]


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_nothing_always_passes(conn, redis, algorithm):
    key = fresh()
    command = f"LIMIT {algorithm.format(key)}"
    before = written(redis)
    assert decide(conn, command + " COST 0")[:4] == (0, 3, 3, -1)
    assert written(redis) == before
    for left in (2, 1, 0):
        assert decide(conn, command)[:4] == (0, 3, left, -1)
        before = written(redis)
        found = decisions(conn, *[command + option for option in (" COST 0", " COST 0 WAIT 50", " PEEK COST 0", " COST 0")])
        assert all(one[:4] == (0, 3, left, -1) and one.reset > 0 for one in found), found
        assert written(redis) == before
    assert decide(conn, command).limited == 1
    assert decide(conn, command + " COST 0")[:4] == (0, 3, 0, -1), "nor does a refusal that is remembered stand against it"
    mixed = decisions(conn, command + " PEEK", command + " COST 0", command, command + " PEEK")
    assert [one.limited for one in mixed] == [1, 0, 1, 1]
