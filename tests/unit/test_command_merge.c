/*
 * Tests of adding weir's commands to Redis' replies to COMMAND. The replies are those of
 * redis-server 7.0.15 and 6.2 (entries of seven elements, no DOCS), with few commands left. Each is
 * in front of a guard page, whole and cut everywhere.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "quota/command_merge.h"
#include "resp/emit.h"

#include "guard.h"
#include "show.h"

#define WORDS_MAX 16
#define ROOM 65536

/* PING's entry and docs in both versions. */
#define PING_2                                                                                      \
    "*10\r\n$4\r\nping\r\n:-1\r\n*1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n*2\r\n+@fast\r\n+@connection\r\n" \
    "*2\r\n$25\r\nrequest_policy:all_shards\r\n$29\r\nresponse_policy:all_succeeded\r\n*0\r\n*0\r\n"
#define PING_3                                                                                      \
    "*10\r\n$4\r\nping\r\n:-1\r\n~1\r\n+fast\r\n:0\r\n:0\r\n:0\r\n~2\r\n+@fast\r\n+@connection\r\n" \
    "~2\r\n$25\r\nrequest_policy:all_shards\r\n$29\r\nresponse_policy:all_succeeded\r\n~0\r\n~0\r\n"
#define PING_62                                                                                    \
    "*7\r\n$4\r\nping\r\n:-1\r\n*3\r\n+stale\r\n+fast\r\n+x\r\n:0\r\n:0\r\n:0\r\n*1\r\n+@fast\r\n"
#define PING_DOCS_2                                                                                \
    "$4\r\nping\r\n*4\r\n$7\r\nsummary\r\n$4\r\nPing\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n"
#define PING_DOCS_3                                                                                \
    "$4\r\nping\r\n%2\r\n$7\r\nsummary\r\n$4\r\nPing\r\n$5\r\ngroup\r\n$10\r\nconnection\r\n"

static struct guard request_guard;
static struct guard reply_guard;

/* The words of `line` as a request. */
static struct slice request_of(const char *line)
{
    char copy[512];
    char request[1024];
    struct slice words[WORDS_MAX];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", line);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        words[n++] = slice_str(word);
    size_t len = emit_array(request, words, n);
    return slice_of(guard_place(&request_guard, request, len), len);
}

static bool merge(const char *line, struct slice reply, bool is_resp3, struct build *out)
{
    build_init(out, is_resp3);
    struct slice placed = slice_of(guard_place(&reply_guard, reply.at, reply.len), reply.len);
    return command_merge(request_of(line), placed, true, out);
}

/*
 * Adds the bytes of `pattern`. Between \1s an entry of weir's: I for COMMAND INFO, D for DOCS, L
 * for LIST.
 */
static void expect(struct build *build, const char *pattern)
{
    for (const char *at = pattern; *at != '\0';) {
        size_t plain = strcspn(at, "\1");
        build_raw(build, slice_of(at, plain));
        at += plain;
        if (*at == '\0')
            break;
        size_t len = strcspn(at + 2, "\1");
        const struct own *own = own_find(slice_of(at + 2, len));
        assert_non_null(own);
        (at[1] == 'D' ? docs_entry : at[1] == 'L' ? docs_name : docs_info)(build, own);
        at += len + 3;
    }
}

static void assert_same(struct slice got, struct slice expected)
{
    if (slice_eq(got, expected))
        return;
    show_bytes(stderr, got.at, got.len);
    fputs("\n    but expected\n", stderr);
    show_bytes(stderr, expected.at, expected.len);
    fputs("\n", stderr);
    fail();
}

static void assert_cuts_are_safe(const char *line, struct slice reply, bool is_resp3)
{
    for (size_t len = 0; len < reply.len; len++) {
        struct build out;
        (void)!merge(line, slice_of(reply.at, len), is_resp3, &out);
        build_fini(&out);
    }
}

static void assert_merged(const char *line, const char *reply, bool is_resp3, const char *pattern)
{
    struct build out;
    struct build expected;
    build_init(&expected, is_resp3);
    expect(&expected, pattern);
    assert_true(merge(line, slice_str(reply), is_resp3, &out));
    assert_same(slice_of(out.at, out.len), slice_of(expected.at, expected.len));
    build_fini(&out);
    build_fini(&expected);
    assert_cuts_are_safe(line, slice_str(reply), is_resp3);
}

static void assert_unchanged(const char *line, const char *reply, bool is_resp3)
{
    struct build out;
    assert_false(merge(line, slice_str(reply), is_resp3, &out));
    build_fini(&out);
    assert_cuts_are_safe(line, slice_str(reply), is_resp3);
}

static size_t top_count(void)
{
    size_t count = 0;
    for (size_t i = 0; i < own_count(); i++)
        count += docs_is_top(own_row(i));
    return count;
}

/* Each of weir's commands follows a reply of `count` elements or pairs; in LIST subcommands too. */
static void assert_all(const char *line, const char *before, size_t count, const char *body,
                       bool is_resp3, char kind)
{
    char reply[1024];
    char pattern[ROOM];
    size_t added =
        (kind == 'L' ? own_count() : top_count()) * (kind == 'D' && before[0] == '*' ? 2 : 1);
    snprintf(reply, sizeof reply, "%s%zu\r\n%s", before, count, body);
    size_t len =
        (size_t)snprintf(pattern, sizeof pattern, "%s%zu\r\n%s", before, count + added, body);
    for (size_t i = 0; i < own_count(); i++)
        if (kind == 'L' || docs_is_top(own_row(i)))
            len += (size_t)snprintf(pattern + len, sizeof pattern - len, "\1%c%s\1", kind,
                                    own_row(i)->name);
    assert_true(len < sizeof pattern);
    assert_merged(line, reply, is_resp3, pattern);
}

static void all_commands_are_followed_by_ours(void **state)
{
    (void)state;
    assert_int_equal(top_count(), 2);
    assert_all("COMMAND", "*", 1, PING_2, false, 'I');
    assert_all("COMMAND INFO", "*", 2, PING_2 PING_2, false, 'I');
    assert_all("command", "*", 1, PING_3, true, 'I');
    assert_all("Command Info", "*", 1, PING_3, true, 'I');
    assert_all("COMMAND", "*", 1, PING_62, false, 'I');
    assert_all("COMMAND DOCS", "*", 4, PING_DOCS_2 PING_DOCS_2, false, 'D');
    assert_all("COMMAND docs", "%", 1, PING_DOCS_3, true, 'D');
    assert_all("COMMAND LIST", "*", 2, "$4\r\nping\r\n$3\r\nlcs\r\n", false, 'L');
    assert_all("COMMAND LIST", "~", 1, "$4\r\nping\r\n", true, 'L');
}

static void names_that_are_ours_are_answered(void **state)
{
    (void)state;
    assert_merged("COMMAND INFO limit|status ping nope LIMIT|Set limit|nope",
                  "*5\r\n$-1\r\n" PING_2 "$-1\r\n$-1\r\n$-1\r\n", false,
                  "*5\r\n\1Ilimit|status\1" PING_2 "$-1\r\n\1Ilimit|set\1$-1\r\n");
    assert_merged("COMMAND INFO PING Limit", "*2\r\n" PING_3 "_\r\n", true,
                  "*2\r\n" PING_3 "\1Ilimit\1");
    assert_merged("COMMAND INFO limit", "*1\r\n$-1\r\n", false, "*1\r\n\1Ilimit\1");
    assert_merged("COMMAND INFO limit ping", "*2\r\n*-1\r\n" PING_62, false,
                  "*2\r\n\1Ilimit\1" PING_62);
    /* Redis has a command LIMIT of its own, which no client sees. */
    assert_merged("COMMAND INFO limit", "*1\r\n" PING_2, false, "*1\r\n\1Ilimit\1");
}

static void docs_that_are_ours_follow_those_of_redis(void **state)
{
    (void)state;
    assert_merged("COMMAND DOCS PING limit|status nope LIMIT ping limit|top",
                  "*4\r\n" PING_DOCS_2 PING_DOCS_2, false,
                  "*10\r\n" PING_DOCS_2 PING_DOCS_2 "\1Dlimit|status\1\1Dlimit\1\1Dlimit|top\1");
    assert_merged("COMMAND DOCS limit ping", "%1\r\n" PING_DOCS_3, true,
                  "%2\r\n" PING_DOCS_3 "\1Dlimit\1");
    assert_merged("COMMAND DOCS limit", "*0\r\n", false, "*2\r\n\1Dlimit\1");
    assert_merged("COMMAND DOCS limit", "%0\r\n", true, "%1\r\n\1Dlimit\1");
    assert_merged("COMMAND DOCS ping", "%1\r\n" PING_DOCS_3, true, "%1\r\n" PING_DOCS_3);
}

static void the_count_is_ours_too(void **state)
{
    (void)state;
    assert_merged("COMMAND COUNT", ":240\r\n", false, ":242\r\n");
    assert_unchanged("COMMAND COUNT", ":99999999999999999\r\n", false);
}

/* If the operator leaves CL.THROTTLE to Redis, weir does not list it. */
static void what_is_left_to_redis_is_not_ours(void **state)
{
    static const struct {
        const char *line, *reply, *expected;
    } rows[] = {
        {"COMMAND COUNT", ":240\r\n", ":241\r\n"},
        {"COMMAND INFO cl.throttle", "*1\r\n*-1\r\n", "*1\r\n*-1\r\n"},
        {"COMMAND DOCS cl.throttle", "*0\r\n", "*0\r\n"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct build out;
        build_init(&out, false);
        struct slice reply = slice_str(rows[i].reply);
        reply = slice_of(guard_place(&reply_guard, reply.at, reply.len), reply.len);
        assert_true(command_merge(request_of(rows[i].line), reply, false, &out));
        assert_same(slice_of(out.at, out.len), slice_str(rows[i].expected));
        build_fini(&out);
    }
}

static void what_is_not_as_expected_passes(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "COMMAND",
        "COMMAND INFO",
        "COMMAND INFO limit",
        "COMMAND DOCS",
        "COMMAND DOCS limit",
        "COMMAND DOCS ping",
        "COMMAND LIST",
        "COMMAND COUNT",
        "COMMAND HELP",
        "COMMAND NOPE limit",
    };
    static const char *const replies[] = {
        "-ERR unknown subcommand\r\n",
        "-NOAUTH\r\n",
        "+QUEUED\r\n",
        "$-1\r\n",
        "*-1\r\n",
        "_\r\n",
        "*?\r\n.\r\n",
        "*1x\r\n",
        "*\r\n",
        "|1\r\n+a\r\n+b\r\n:1\r\n",
        "#t\r\n",
        "(12\r\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        for (size_t j = 0; j < sizeof replies / sizeof replies[0]; j++) {
            assert_unchanged(lines[i], replies[j], false);
            assert_unchanged(lines[i], replies[j], true);
        }
    assert_unchanged("COMMAND", "%1\r\n" PING_DOCS_3, true);
    assert_unchanged("COMMAND LIST", "%0\r\n", true);
    assert_unchanged("COMMAND DOCS", "~0\r\n", true);
    assert_unchanged("COMMAND INFO limit", "*2\r\n$-1\r\n$-1\r\n", false);
    assert_unchanged("COMMAND INFO limit ping", "*1\r\n$-1\r\n", false);
    assert_unchanged("COMMAND LIST FILTERBY", "*0\r\n", false);
    assert_unchanged("COMMAND LIST FILTERBY PATTERN lim*", "*0\r\n", false);
    assert_unchanged("COMMAND GETKEYS limit reset k", "-ERR Invalid command specified\r\n", false);
    assert_unchanged("COMMAND GETKEYS set limit v", "*1\r\n$5\r\nlimit\r\n", false);
    assert_unchanged("COMMAND HELP", "*1\r\n+COMMAND\r\n", false);
    assert_unchanged("PING", "*0\r\n", false);
}

/* Without Redis, as on the operators' socket. */
static void weirs_commands_alone_are_told(void **state)
{
    static const struct {
        const char *line, *expected[2]; /* in RESP2, in RESP3 */
    } rows[] = {
        {"COMMAND", {"*2\r\n\1Ilimit\1\1Icl.throttle\1", "*2\r\n\1Ilimit\1\1Icl.throttle\1"}},
        {"command info", {"*2\r\n\1Ilimit\1\1Icl.throttle\1", "*2\r\n\1Ilimit\1\1Icl.throttle\1"}},
        {"COMMAND INFO get LIMIT", {"*2\r\n$-1\r\n\1Ilimit\1", "*2\r\n_\r\n\1Ilimit\1"}},
        {"COMMAND DOCS", {"*4\r\n\1Dlimit\1\1Dcl.throttle\1", "%2\r\n\1Dlimit\1\1Dcl.throttle\1"}},
        {"COMMAND DOCS get limit|top", {"*2\r\n\1Dlimit|top\1", "%1\r\n\1Dlimit|top\1"}},
        {"COMMAND LIST FILTERBY PATTERN *", {"*0\r\n", "*0\r\n"}},
        {"COMMAND COUNT", {":2\r\n", ":2\r\n"}},
        {"COMMAND NOPE", {"*0\r\n", "*0\r\n"}},
    };
    (void)state;
    for (size_t i = 0; i < 2 * sizeof rows / sizeof rows[0]; i++) {
        struct build out;
        struct build expected;
        build_init(&out, i % 2 == 1);
        build_init(&expected, i % 2 == 1);
        expect(&expected, rows[i / 2].expected[i % 2]);
        command_merge_alone(request_of(rows[i / 2].line), true, &out);
        assert_same(slice_of(out.at, out.len), slice_of(expected.at, expected.len));
        build_fini(&out);
        build_fini(&expected);
    }
}

static void no_reply_grows_beyond_the_bound(void **state)
{
    (void)state;
    enum { NAMES = 5000 };
    static struct slice words[NAMES + 2];
    words[0] = SLICE("COMMAND");
    words[1] = SLICE("DOCS");
    for (size_t i = 0; i < NAMES; i++)
        words[i + 2] = SLICE("limit");
    char *request = malloc((NAMES + 3) * (EMIT_HEADER_MAX + 16));
    assert_non_null(request);
    struct build out;
    build_init(&out, true);
    assert_false(command_merge(slice_of(request, emit_array(request, words, NAMES + 2)),
                               SLICE("%0\r\n"), true, &out));
    assert_true(out.len < COMMAND_MERGE_MAX + 65536);
    build_fini(&out);
    free(request);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_commands_are_followed_by_ours),
        cmocka_unit_test(names_that_are_ours_are_answered),
        cmocka_unit_test(docs_that_are_ours_follow_those_of_redis),
        cmocka_unit_test(the_count_is_ours_too),
        cmocka_unit_test(what_is_left_to_redis_is_not_ours),
        cmocka_unit_test(what_is_not_as_expected_passes),
        cmocka_unit_test(weirs_commands_alone_are_told),
        cmocka_unit_test(no_reply_grows_beyond_the_bound),
    };
    request_guard = guard_new(ROOM);
    reply_guard = guard_new(ROOM);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
