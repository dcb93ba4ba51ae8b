"""Redis' counts of errors are its clients': weir's own question, an error each time, is asked only where it must be."""

import pytest


@pytest.mark.parametrize("command", ["FUNCTION FLUSH", "FUNCTION DELETE none", "FUNCTION DUMP", "SCRIPT FLUSH"])
def test_what_cannot_forge_a_reply_is_not_followed_by_a_question(command, conn, redis):
    known = redis.call("COMMAND", "INFO", command.split()[0])[0]
    if known is None:
        pytest.skip("this Redis has no functions")
    conn.ask(command, "CONFIG RESETSTAT", "CONFIG SET maxmemory 0")  # weir looks at the answer to the last one
    assert b"errorstat" not in conn.call("INFO", "errorstats")
