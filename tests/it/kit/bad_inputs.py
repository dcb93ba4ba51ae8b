"""Requests that are odd, unfinished or broken, and what Redis answers to them.

A row has the name, the bytes, and how the answer begins. Then come the differences from the common
row:
closed   the connection is closed after the answer
auth     Redis has a password, and the client has not given it
strict   weir answers a protocol error and closes, where Redis is lax or waits for more
then     what is sent afterwards, to check that the connection is still in step (default: a PING)
whole    the answer depends on how the bytes arrive, so the bytes are not cut
before_7 what an older Redis answers, and whether Redis closes; weir does what newer releases do
after    what newer releases answer in the end, after `then` is sent and the server has closed
"""

from dataclasses import dataclass

from kit.resp import encode
from kit.server import at_least, valkey_at_least

IS_7 = at_least(7, 0)
PING = encode("PING", "still here")


@dataclass(frozen=True)
class Case:
    name: str
    sent: bytes
    answer: bytes
    closed: bool = False
    auth: bool = False
    strict: bool = False
    then: bytes = PING
    whole: bool = False
    before_7: tuple = ()
    after: bytes = b""

    @property
    def is_newer(self):
        """True if the server under test is too old to behave as this case says."""
        return bool(self.before_7) and not IS_7


def protocol_error(text):
    return b"-ERR Protocol error: " + text + b"\r\n"


def unknown(name, *args):
    form, each = (b"'%s'", b"'%s' ") if IS_7 else (b"`%s`", b"`%s`, ")
    quoted = b"".join(each % arg for arg in args)
    return b"-ERR unknown command %s, with args beginning with: %s\r\n" % (form % name, quoted)


PONG = b"+PONG\r\n"
NOAUTH = b"-NOAUTH Authentication required.\r\n"
MULTIBULK_LENGTH = protocol_error(b"invalid multibulk length")
BULK_LENGTH = protocol_error(b"invalid bulk length")
UNBALANCED = protocol_error(b"unbalanced quotes in request")
UNKNOWN_SUBCOMMAND = b"unknown subcommand" if IS_7 else b"Unknown subcommand or wrong number of arguments for"
NOSCRIPT = b"-NOSCRIPT No matching script.%s\r\n" % (b"" if valkey_at_least(8, 0) else b" Please use EVAL.")
SERVER = b"$6\r\nvalkey\r\n" if valkey_at_least(8, 0) else b"$5\r\nredis\r\n"
KINDS = b"P|S" if IS_7 else b"P"
NO_PASSWORD_SET = (
    b"-ERR AUTH <password> called without any password configured for the default user. "
    b"Are you sure your configuration is correct?\r\n"
)
SUBSCRIBED = (
    b"*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"
    b"-ERR Can't execute 'get': only (%s)SUBSCRIBE / (%s)UNSUBSCRIBE / PING / QUIT / RESET "
    b"are allowed in this context\r\n"
) % (KINDS, KINDS)

CASES = [
    # inline commands and empty requests
    Case("ok_inline_ping_lf", b"PING\n", PONG),
    # one CR belongs to the line end, the other CR is a blank
    Case("ok_inline_double_cr", b"PING\r\r\n", PONG),
    Case("ok_inline_mixed_case", b"pInG\r\n", PONG),
    Case("ok_empty_crlf", b"\r\n", b""),
    Case("ok_empty_then_ping", b"\r\n\r\n\n*1\r\n$4\r\nPING\r\n", PONG),
    Case("ok_mb_zero_then_inline", b"*0\r\nPING\r\n", PONG),
    Case("ok_mb_minus_one_then_inline", b"*-1\r\nPING\r\n", PONG),
    Case("ok_mb_minus_ten", b"*-10\r\n*1\r\n$4\r\nPING\r\n", PONG),
    Case("ok_mb_llong_min", b"*-9223372036854775808\r\n*1\r\n$4\r\nPING\r\n", PONG),
    Case("ok_empty_bulk_arg", b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n", b"$0\r\n\r\n"),
    Case(
        "ok_bulk_looks_like_resp",
        b"*2\r\n$4\r\nECHO\r\n$14\r\n*1\r\n$4\r\nPING\r\n\r\n",
        b"$14\r\n*1\r\n$4\r\nPING\r\n\r\n",
    ),
    Case("ok_single_quotes", b"ECHO 'a b'\r\n", b"$3\r\na b\r\n"),
    Case("ok_quoted_embedded_newline_escape", b'ECHO "a\\r\\nPING"\r\n', b"$7\r\na\r\nPING\r\n"),
    # unfinished requests
    Case("wait_partial_header", b"*1", b""),
    Case("wait_header_cr_only", b"*1\r", b"", then=b"\n$4\r\nPING\r\n"),
    Case(
        "wait_count_int_max",
        b"*2147483647\r\n",
        b"",
        before_7=(MULTIBULK_LENGTH, True),
        after=protocol_error(b"expected '$', got '*'"),
    ),
    Case("wait_bulk_512mb_declared", b"*2\r\n$4\r\nECHO\r\n$536870912\r\n", b""),
    Case("wait_lf_only_resp", b"*1\n$4\nPING\n", b"", strict=True),
    Case("wait_nul_in_inline", b"PI\x00NG\r\n", b"", strict=True),
    Case("wait_tls_client_hello", b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03", b"", strict=True),
    # a number that is not a valid argument count
    Case("mb_alpha", b"*a\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_leading_zero", b"*01\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_double_zero", b"*00\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_float", b"*1.0\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_int_max_plus1", b"*2147483648\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_uint32_wrap", b"*4294967297\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_llong_max", b"*9223372036854775807\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_ullong_wrap", b"*18446744073709551617\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_llong_min_minus1", b"*-9223372036854775809\r\n", MULTIBULK_LENGTH, closed=True),
    Case("mb_21_digits", b"*000000000000000000001\r\n", MULTIBULK_LENGTH, closed=True),
    # a number that is not a valid argument length
    Case("bulk_minus_one", b"*1\r\n$-1\r\n", BULK_LENGTH, closed=True),
    Case("bulk_empty", b"*1\r\n$\r\n", BULK_LENGTH, closed=True),
    Case("bulk_leading_zero", b"*1\r\n$04\r\nPING\r\n", BULK_LENGTH, closed=True),
    Case("bulk_trail_space", b"*1\r\n$4 \r\nPING\r\n", BULK_LENGTH, closed=True),
    Case("bulk_ullong_wrap", b"*1\r\n$18446744073709551620\r\nPING\r\n", BULK_LENGTH, closed=True),
    Case("bulk_llong_max", b"*1\r\n$9223372036854775807\r\n", BULK_LENGTH, closed=True),
    # an argument that is not a bulk string
    Case("expect_dollar_got_percent", b"*1\r\n%1\r\n", protocol_error(b"expected '$', got '%'"), closed=True),
    Case("expect_dollar_got_cr", b"*1\r\n\r\n", protocol_error(b"expected '$', got ' '"), closed=True),
    Case(
        "expect_dollar_third_arg",
        b"*3\r\n$3\r\nSET\r\n$1\r\nx\r\nfooz\r\n",
        protocol_error(b"expected '$', got 'f'"),
        closed=True,
    ),
    # line ends that Redis does not check
    Case("lax_trailer_then_ping", b"*1\r\n$4\r\nPINGXX*1\r\n$4\r\nPING\r\n", PONG + PONG, strict=True),
    Case("lax_header_cr_any", b"*1\rX$4\rXPING\r\n", PONG, strict=True),
    Case(
        "lax_header_cr_missing_lf",
        b"*1\r$4\r\nPING\r\n",
        protocol_error(b"expected '$', got '4'"),
        closed=True,
        strict=True,
    ),
    Case("long_bulk_len_desync", b"*1\r\n$5\r\nPING\r\nPING\r\n", unknown(b"PING ") + unknown(b"ING"), strict=True),
    # broken or endless lines
    Case("inline_unbalanced_dq", b'"PING\r\n', UNBALANCED, closed=True),
    Case("inline_unbalanced_sq", b"'PING\r\n", UNBALANCED, closed=True),
    Case("inline_triple_quotes", b'set """test-key""" test-value\r\nping\r\n', UNBALANCED, closed=True),
    Case("inline_too_big", b"A" * 65537, protocol_error(b"too big inline request"), closed=True),
    Case("inline_64k_exact_waits", b"A" * 65536, b"", then=b"A"),
    Case("mb_count_string_too_big", b"*" + b"1" * 65537, protocol_error(b"too big mbulk count string"), closed=True),
    Case("nul_flood", b"\x00" + b"A" * 65537, protocol_error(b"too big inline request"), closed=True, strict=True),
    # replies sent as requests are inline commands
    Case("inline_simple_string", b"+OK\r\n", unknown(b"+OK")),
    Case("inline_error_reply", b"-ERR x\r\n", unknown(b"-ERR", b"x")),
    # well framed, but a wrong command
    Case("cmd_nul_name", b"*1\r\n$1\r\n\x00\r\n", unknown(b"")),
    Case("cmd_unknown_crlf_arg", b"*2\r\n$3\r\nFOO\r\n$4\r\na\r\nb\r\n", unknown(b"FOO", b"a  b")),
    Case("cmd_quit", b"QUIT\r\nPING\r\n", b"+OK\r\n", closed=True),
    Case("cmd_exec_without_multi", b"EXEC\r\n", b"-ERR EXEC without MULTI\r\n"),
    Case("cmd_discard_without_multi", b"DISCARD\r\n", b"-ERR DISCARD without MULTI\r\n"),
    Case("cmd_client_no_sub", b"CLIENT\r\n", b"-ERR wrong number of arguments for 'client' command\r\n"),
    Case("cmd_client_bad_sub", b"CLIENT FOO\r\n", b"-ERR %s 'FOO'. Try CLIENT HELP.\r\n" % UNKNOWN_SUBCOMMAND),
    Case("cmd_hello_4", b"HELLO 4\r\n", b"-NOPROTO unsupported protocol version\r\n"),
    Case("cmd_hello_auth_truncated", b"HELLO 2 AUTH default\r\n", b"-ERR Syntax error in HELLO option 'AUTH'\r\n"),
    Case("cmd_hello_3_null", b"HELLO 3\r\nGET no_such_key_zz\r\n", b"%7\r\n$6\r\nserver\r\n" + SERVER),
    Case("cmd_auth_no_password_set", b"AUTH foo\r\n", NO_PASSWORD_SET),
    Case(
        "cmd_eval_numkeys_too_many",
        b'EVAL "return 1" 2 k\r\n',
        b"-ERR Number of keys can't be greater than number of args\r\n",
    ),
    Case("cmd_evalsha_missing", b"EVALSHA " + b"f" * 40 + b" 0\r\n", NOSCRIPT),
    Case("cmd_evalsha_short", b"EVALSHA abc 0\r\n", NOSCRIPT),
    Case("cmd_subscribe_context", b"SUBSCRIBE a\r\nGET x\r\n", SUBSCRIBED),
    # other protocols
    Case("http_post_lower", b"post x\r\n", b"", closed=True),
    Case("http_get_with_host", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"", closed=True, whole=True),
    Case(
        "http_post_resp_nul",
        b"*1\r\n$8\r\nPOST\x00abc\r\n",  # the name ends at the NUL
        b"",
        closed=True,
        before_7=(unknown(b"POST"), False),
    ),
    Case("http_head_no_host", b"HEAD / HTTP/1.0\r\n\r\n", unknown(b"HEAD", b"/", b"HTTP/1.0")),
    Case(
        "proxy_v1_header",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2\r\nPING\r\n",
        unknown(b"PROXY", b"TCP4", b"1.2.3.4", b"5.6.7.8", b"1", b"2") + PONG,
    ),
    Case("ssh_banner", b"SSH-2.0-OpenSSH_9.2\r\n", unknown(b"SSH-2.0-OpenSSH_9.2")),
    # before authentication
    Case("unauth_ping", b"*1\r\n$4\r\nPING\r\n", NOAUTH, auth=True),
    Case("unauth_mb_11", b"*11\r\n", protocol_error(b"unauthenticated multibulk length"), closed=True, auth=True),
    Case("unauth_bulk_invalid_wins", b"*1\r\n$-1\r\n", BULK_LENGTH, closed=True, auth=True),
    Case("unauth_mb_invalid_wins", b"*2147483648\r\n", MULTIBULK_LENGTH, closed=True, auth=True),
    Case("unauth_unknown_cmd", b"FOO\r\n", unknown(b"FOO"), auth=True),
    Case(
        "unauth_auth_wrong",
        b"AUTH wrong\r\n",
        b"-WRONGPASS invalid username-password pair or user is disabled.\r\n",
        auth=True,
    ),
    Case("unauth_post", b"POST / HTTP/1.1\r\n\r\n", b"", closed=True, auth=True, before_7=(NOAUTH, False)),
    Case("unauth_too_big_inline", b"A" * 65537, protocol_error(b"too big inline request"), closed=True, auth=True),
    Case("unauth_mb_10", b"*10\r\n", b"", auth=True),
    Case("unauth_bulk_16384", b"*1\r\n$16384\r\n", b"", auth=True),
    Case(
        "unauth_bulk_16385",
        b"*1\r\n$16385\r\n",
        protocol_error(b"unauthenticated bulk length"),
        closed=True,
        auth=True,
    ),
    Case(
        "bulk_count_string_too_big",
        b"*1\r\n$" + b"1" * 65537,
        protocol_error(b"too big bulk count string"),
        closed=True,
    ),
]
