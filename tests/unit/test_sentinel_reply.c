/* Tests of parsing the replies of sentinels in both protocols, and of refusing broken ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "upstream/control_reply.h"

/* The value of the whole text. */
static struct said read_whole(const char *text)
{
    struct slice rest = slice_str(text);
    struct said value;
    assert_true(said_next(&rest, &value));
    assert_int_equal(rest.len, 0);
    return value;
}

static bool is_text(struct slice text, const char *expected)
{
    return slice_eq(text, slice_str(expected));
}

static void test_values(void **state)
{
    (void)state;
    assert_true(is_text(read_whole("+OK\r\n").text, "OK"));
    assert_true(is_text(read_whole(":17\r\n").text, "17"));
    assert_true(is_text(read_whole("$2\r\na\n\r\n").text, "a\n"));
    assert_true(is_text(read_whole("=7\r\ntxt:abc\r\n").text, "abc"));
    assert_true(is_text(read_whole("-ERR x\r\n").text, "ERR x"));
    assert_int_equal(read_whole("-ERR x\r\n").kind, SAID_ERROR);
    assert_int_equal(read_whole("!5\r\nERR x\r\n").kind, SAID_ERROR);
    assert_int_equal(read_whole("*-1\r\n").kind, SAID_NIL);
    assert_int_equal(read_whole("$-1\r\n").kind, SAID_NIL);
    assert_int_equal(read_whole("_\r\n").kind, SAID_NIL);
    assert_int_equal(read_whole("*0\r\n").kind, SAID_LIST);
    assert_int_equal(read_whole("~1\r\n#t\r\n").kind, SAID_LIST);
    assert_int_equal(read_whole("%1\r\n+a\r\n,1.5\r\n").kind, SAID_LIST);
    assert_int_equal(read_whole(">1\r\n(12\r\n").kind, SAID_PUSH);
    assert_int_equal(read_whole("|1\r\n+a\r\n+b\r\n:3\r\n").kind, SAID_TEXT);
    assert_true(is_text(read_whole("|1\r\n+a\r\n+b\r\n:3\r\n").text, "3"));
}

static void test_what_is_none(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "",
        "\r\n",
        "+OK",
        "+OK\r",
        "+OK\rx",
        "$3\r\nab\r\n",
        "$2\r\nabc\r\n",
        "$99999999999\r\nab\r\n",
        "$-2\r\n",
        "%-1\r\n",
        ">-1\r\n",
        "=-1\r\n",
        "*1\r\n",
        "*2\r\n+a\r\n",
        "*99999999\r\n",
        "*x\r\n",
        "?a\r\n",
        "%1\r\n+a\r\n",
        "|1\r\n+a\r\n+b\r\n",
        "|-1\r\n+a\r\n",
        "*1\r\n>1\r\n+a\r\n",
        "*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+deep\r\n",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct slice rest = slice_str(texts[i]);
        struct said value;
        assert_false(said_next(&rest, &value));
    }
    read_whole("*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n*1\r\n+deep\r\n");
}

static void test_master_in_both_protocols(void **state)
{
    (void)state;
    static const char fields[] =
        "$4\r\nname\r\n$1\r\nm\r\n$2\r\nip\r\n$9\r\n127.0.0.1\r\n$4\r\nport\r\n$4\r\n6379\r\n"
        "$5\r\nrunid\r\n$3\r\nabc\r\n$5\r\nflags\r\n$27\r\nmaster,failover_in_progress\r\n"
        "$12\r\nconfig-epoch\r\n$2\r\n12\r\n";
    static const char *const heads[] = {"*12\r\n", "%6\r\n"};
    for (size_t i = 0; i < 2; i++) {
        char text[512];
        struct sentinel_server server;
        snprintf(text, sizeof text, "%s%s", heads[i], fields);
        struct said value = read_whole(text);
        assert_true(sentinel_read_server(&value, &server));
        assert_string_equal(server.host, "127.0.0.1");
        assert_int_equal(server.port, 6379);
        assert_int_equal(server.epoch, 12);
        assert_string_equal(server.run_id, "abc");
        assert_true(server.is_failing_over);
        assert_false(server.is_down);
    }
}

static bool reads_server(const char *ip, const char *port)
{
    char text[1024];
    struct sentinel_server server;
    snprintf(text, sizeof text, "*4\r\n$2\r\nip\r\n$%zu\r\n%s\r\n$4\r\nport\r\n$%zu\r\n%s\r\n",
             strlen(ip), ip, strlen(port), port);
    struct said value = read_whole(text);
    return sentinel_read_server(&value, &server);
}

static void test_addresses(void **state)
{
    (void)state;
    char longest[300] = "";
    memset(longest, 'a', 256);
    assert_true(reads_server("10.0.0.1", "1"));
    assert_true(reads_server("::1", "65535"));
    assert_true(reads_server("fe80::1%eth0", "6379"));
    assert_true(reads_server("redis-0.redis_x", "6379"));
    assert_false(reads_server("", "6379"));
    assert_false(reads_server("10.0.0.1", "0"));
    assert_false(reads_server("10.0.0.1", "65536"));
    assert_false(reads_server("10.0.0.1", "-1"));
    assert_false(reads_server("10.0.0.1", ""));
    assert_false(reads_server("10.0.0.1 ", "6379"));
    assert_false(reads_server("a/b", "6379"));
    assert_false(reads_server(longest, "6379"));
}

static void test_what_is_no_master(void **state)
{
    (void)state;
    static const char *const texts[] = {"+OK\r\n",
                                        "*0\r\n",
                                        "*2\r\n$2\r\nip\r\n$1\r\nx\r\n",
                                        "*4\r\n$2\r\nip\r\n*0\r\n$4\r\nport\r\n:1\r\n",
                                        "*3\r\n$2\r\nip\r\n$1\r\nx\r\n$4\r\nport\r\n",
                                        "-ERR No such master with that name\r\n"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct sentinel_server server;
        struct said value = read_whole(texts[i]);
        assert_false(sentinel_read_server(&value, &server));
    }
}

static void test_flags(void **state)
{
    (void)state;
    static const struct {
        const char *flags;
        bool is_down, is_failing_over;
    } rows[] = {{"slave", false, false},
                {"slave,s_down", true, false},
                {"o_down,master", true, false},
                {"slave,disconnected", true, false},
                {"xs_down,s_downx", false, false},
                {"master,failover_in_progress,s_down", true, true},
                {",,", false, false}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[256];
        struct sentinel_server server;
        snprintf(text, sizeof text, "%%3\r\n+ip\r\n+a\r\n+port\r\n:1\r\n+flags\r\n+%s\r\n",
                 rows[i].flags);
        struct said value = read_whole(text);
        assert_true(sentinel_read_server(&value, &server));
        assert_int_equal(server.is_down, rows[i].is_down);
        assert_int_equal(server.is_failing_over, rows[i].is_failing_over);
    }
}

static void test_messages(void **state)
{
    (void)state;
    struct slice payload;
    struct said value = read_whole(">3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$3\r\nm a\r\n");
    assert_true(sentinel_read_message(&value, "+switch-master", &payload));
    assert_true(is_text(payload, "m a"));
    assert_false(sentinel_read_message(&value, "+odown", &payload));
    value = read_whole(">3\r\n$9\r\nsubscribe\r\n$14\r\n+switch-master\r\n:1\r\n");
    assert_false(sentinel_read_message(&value, "+switch-master", &payload));
    value = read_whole(">1\r\n$7\r\nmessage\r\n");
    assert_false(sentinel_read_message(&value, "+switch-master", &payload));
    value = read_whole("*3\r\n$7\r\nmessage\r\n$14\r\n+switch-master\r\n$3\r\nm a\r\n");
    assert_false(sentinel_read_message(&value, "+switch-master", &payload));
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum sentinel_refusal refusal;
    } rows[] = {
        {"NOAUTH Authentication required.", SENTINEL_WANTS_LOGIN},
        {"NOAUTH HELLO must be called with the client already authenticated, otherwise",
         SENTINEL_WANTS_LOGIN},
        {"WRONGPASS invalid username-password pair or user is disabled.", SENTINEL_REFUSES_LOGIN},
        {"ERR invalid password", SENTINEL_REFUSES_LOGIN},
        {"ERR AUTH <password> called without any password configured for the default user.",
         SENTINEL_REFUSES_LOGIN},
        {"NOPERM this user has no permissions to run the 'sentinel|master' command",
         SENTINEL_FORBIDS},
        {"ERR No such master with that name", SENTINEL_KNOWS_NO_NAME},
        {"NOPROTO unsupported protocol version", SENTINEL_UNKNOWN},
        {"ERR unknown command 'HELLO', with args beginning with: '3' ", SENTINEL_UNKNOWN},
        {"ERR Unknown sentinel subcommand 'myid'", SENTINEL_UNKNOWN},
        {"ERR unknown subcommand 'X'. Try SENTINEL HELP.", SENTINEL_UNKNOWN},
        {"LOADING Redis is loading the dataset in memory", SENTINEL_OTHER},
        {"", SENTINEL_OTHER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_int_equal(sentinel_judge_error(slice_str(rows[i].text)), rows[i].refusal);
}

/* The inbox gives whole replies however they are cut, and refuses a reply that is too long. */
static void test_inbox(void **state)
{
    (void)state;
    static const char text[] = "*2\r\n$1\r\na\r\n+b\r\n>1\r\n+c\r\n";
    struct control_inbox inbox = {.most = SENTINEL_REPLY_MAX};
    struct slice frame;
    size_t used;
    unsigned n_frames = 0;
    for (size_t i = 0; i < sizeof text - 1; i++) {
        enum scan_result result = control_inbox_take(&inbox, text + i, 1, &used, &frame);
        assert_int_not_equal(result, SCAN_BAD);
        n_frames += result == SCAN_FRAME;
    }
    assert_int_equal(n_frames, 2);
    assert_true(is_text(frame, ">1\r\n+c\r\n"));
    control_inbox_fini(&inbox);

    char *junk = malloc(SENTINEL_REPLY_MAX);
    assert_non_null(junk);
    memset(junk, 'x', SENTINEL_REPLY_MAX);
    assert_int_equal(control_inbox_take(&inbox, "+", 1, &used, &frame), SCAN_MORE);
    assert_int_equal(control_inbox_take(&inbox, junk, SENTINEL_REPLY_MAX, &used, &frame), SCAN_BAD);
    free(junk);
    control_inbox_fini(&inbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_master_in_both_protocols),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_what_is_no_master),
        cmocka_unit_test(test_flags),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_inbox),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
