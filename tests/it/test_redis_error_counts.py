"""Redis' error counts belong to its clients. weir's own question that ends in an error is asked
only where necessary.
"""

import pytest


@pytest.mark.parametrize("command", ["FUNCTION FLUSH", "FUNCTION DELETE none", "FUNCTION DUMP", "SCRIPT FLUSH"])
def test_what_cannot_forge_a_reply_is_not_followed_by_a_question(command, conn, redis):
    known = redis.call("COMMAND", "INFO", command.split()[0])[0]
    if known is None:
        pytest.skip("this Redis has no functions")
    # weir checks the reply to the last command
    conn.ask(command, "CONFIG RESETSTAT", "CONFIG SET maxmemory 0")
    assert b"errorstat" not in conn.call("INFO", "errorstats")
