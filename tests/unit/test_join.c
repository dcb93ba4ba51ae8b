/*
 * Tests of joining the replies of parts: every way, RESP2 and RESP3, errors, and replies that do
 * not fit together.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#include "resp/join.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])
#define PARTS 4
#define ODD "-UPSTREAM replies of several nodes are inconsistent\r\n"
#define NOPERM "-NOPERM no\r\n"

static const struct {
    enum join join;
    const char *parts[PARTS];
    const char *wanted;
} rows[] = {
    {JOIN_FIRST, {"$1\r\na\r\n"}, "$1\r\na\r\n"},
    {JOIN_OK, {"+OK\r\n", "+OK\r\n"}, "+OK\r\n"},
    {JOIN_OK, {"+OK\r\n", NOPERM, "-ERR other\r\n"}, NOPERM},
    {JOIN_OK, {"$3\r\nlib\r\n", "$3\r\nlib\r\n"}, "$3\r\nlib\r\n"},
    {JOIN_OK, {"+OK\r\n", "!5\r\nERR a\r\n"}, "!5\r\nERR a\r\n"},
    {JOIN_ANY, {"-NOTBUSY no\r\n", "+OK\r\n", "-NOTBUSY no\r\n"}, "+OK\r\n"},
    {JOIN_ANY, {"-NOTBUSY no\r\n", "-UNKILLABLE it writes\r\n"}, "-UNKILLABLE it writes\r\n"},
    {JOIN_ANY, {"-NOTBUSY one\r\n", "-NOTBUSY two\r\n"}, "-NOTBUSY two\r\n"},
    {JOIN_SUM, {":1\r\n", ":0\r\n", ":41\r\n"}, ":42\r\n"},
    {JOIN_SUM, {":7\r\n"}, ":7\r\n"},
    {JOIN_SUM, {":1\r\n", NOPERM}, NOPERM},
    {JOIN_SUM, {":1\r\n", "$-1\r\n"}, ODD},
    {JOIN_SUM, {":9223372036854775807\r\n", ":1\r\n"}, ":9223372036854775807\r\n"},
    {JOIN_LEAST, {":3\r\n", ":1\r\n", ":2\r\n"}, ":1\r\n"},
    {JOIN_LEAST, {":3\r\n", "+OK\r\n"}, ODD},
    {JOIN_LEAST_EACH, {"*2\r\n:1\r\n:2\r\n", "*2\r\n:0\r\n:3\r\n"}, "*2\r\n:0\r\n:2\r\n"},
    {JOIN_AND, {"*2\r\n:1\r\n:1\r\n", "*2\r\n:1\r\n:0\r\n"}, "*2\r\n:1\r\n:0\r\n"},
    {JOIN_AND, {"*2\r\n:1\r\n:1\r\n", "*1\r\n:1\r\n"}, ODD},
    {JOIN_AND, {"*0\r\n", "*0\r\n"}, "*0\r\n"},
    {JOIN_PAIRS,
     {"*4\r\n$1\r\na\r\n:1\r\n$1\r\nb\r\n:0\r\n", "*4\r\n$1\r\na\r\n:2\r\n$1\r\nb\r\n:5\r\n"},
     "*4\r\n$1\r\na\r\n:3\r\n$1\r\nb\r\n:5\r\n"},
    {JOIN_PAIRS, {"*0\r\n", "*0\r\n"}, "*0\r\n"},
    {JOIN_PAIRS, {"*2\r\n$1\r\na\r\n:1\r\n", "*0\r\n"}, ODD},
    {JOIN_PAIRS, {"*2\r\n$1\r\na\r\n$1\r\nb\r\n", "*2\r\n$1\r\na\r\n:1\r\n"}, ODD},
    {JOIN_LIST,
     {"*1\r\n$1\r\na\r\n", "*0\r\n", "*2\r\n$1\r\nb\r\n:1\r\n"},
     "*3\r\n$1\r\na\r\n$1\r\nb\r\n:1\r\n"},
    {JOIN_LIST, {"~1\r\n+a\r\n", "~1\r\n+b\r\n"}, "~2\r\n+a\r\n+b\r\n"},
    {JOIN_LIST, {"%1\r\n+a\r\n:1\r\n", "%1\r\n+b\r\n:2\r\n"}, "%2\r\n+a\r\n:1\r\n+b\r\n:2\r\n"},
    {JOIN_LIST, {"*1\r\n+a\r\n", "~1\r\n+b\r\n"}, ODD},
    {JOIN_LIST, {"*1\r\n+a\r\n", "*-1\r\n"}, ODD},
    {JOIN_LIST, {"*1\r\n+a\r\n", "_\r\n"}, ODD},
    {JOIN_TEXT, {"$2\r\na\n\r\n", "$4\r\nb\r\n\n\r\n"}, "$6\r\na\nb\r\n\n\r\n"},
    {JOIN_TEXT, {"=6\r\ntxt:a\n\r\n", "=6\r\ntxt:b\n\r\n"}, "=8\r\ntxt:a\nb\n\r\n"},
    {JOIN_TEXT, {"=6\r\ntxt:a\n\r\n", "$2\r\nb\n\r\n"}, ODD},
    {JOIN_TEXT, {"$-1\r\n", "$2\r\nb\n\r\n"}, ODD},
    {JOIN_PICK, {"$-1\r\n", "$1\r\nb\r\n"}, "$1\r\nb\r\n"},
    {JOIN_PICK, {"_\r\n", "_\r\n"}, "_\r\n"},
    {JOIN_PICK, {"$-1\r\n", "-LOADING\r\n"}, "-LOADING\r\n"},
    {JOIN_KILL, {":1\r\n", ":0\r\n"}, ":1\r\n"},
    {JOIN_KILL, {"-ERR No such client\r\n", "+OK\r\n"}, "+OK\r\n"},
    {JOIN_KILL, {"-ERR No such client\r\n", "-ERR No such client\r\n"}, "-ERR No such client\r\n"},
    {JOIN_KILL, {":1\r\n", NOPERM}, NOPERM},
};

static size_t slices_of(const char *const *parts, struct slice *out)
{
    size_t n = 0;
    for (; n < PARTS && parts[n] != NULL; n++)
        out[n] = slice_str(parts[n]);
    return n;
}

static void assert_is(struct build *out, const char *wanted)
{
    assert_false(out->is_broken);
    if (!slice_eq(slice_of(out->at, out->len), slice_str(wanted)))
        fail_msg("%.*s is not %s", (int)out->len, out->at, wanted);
    build_fini(out);
}

static void every_way(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct slice parts[PARTS];
        struct build out;
        size_t n = slices_of(rows[i].parts, parts);
        build_init(&out, false);
        join_replies(&out, rows[i].join, parts, n, 0);
        assert_is(&out, rows[i].wanted);
    }
}

static void picks_from_where_it_is_told(void **state)
{
    (void)state;
    static const char *const parts[PARTS] = {"$1\r\na\r\n", "$1\r\nb\r\n", "$-1\r\n"};
    static const char *const wanted[] = {"$1\r\na\r\n", "$1\r\nb\r\n", "$1\r\na\r\n",
                                         "$1\r\na\r\n"};
    struct slice replies[PARTS];
    size_t n = slices_of(parts, replies);
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        struct build out;
        build_init(&out, false);
        join_replies(&out, JOIN_PICK, replies, n, i);
        assert_is(&out, wanted[i]);
    }
}

/* MGET a b c b: a and c are in one part, b in the other. */
static const struct join_where where[] = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};

static void values_of(const char *first, const char *second, const char *wanted)
{
    const struct slice replies[] = {slice_str(first), slice_str(second)};
    struct build out;
    build_init(&out, false);
    join_values(&out, replies, 2, where, COUNT_OF(where));
    assert_is(&out, wanted);
}

static void values_in_order(void **state)
{
    (void)state;
    values_of("*2\r\n$1\r\nA\r\n$-1\r\n", "*2\r\n$3\r\n\r\nB\r\n$3\r\n\r\nB\r\n",
              "*4\r\n$1\r\nA\r\n$3\r\n\r\nB\r\n$-1\r\n$3\r\n\r\nB\r\n");
    values_of("*2\r\n_\r\n$0\r\n\r\n", "*2\r\n$1\r\nB\r\n_\r\n",
              "*4\r\n_\r\n$1\r\nB\r\n$0\r\n\r\n_\r\n");
}

static void values_and_an_error(void **state)
{
    (void)state;
    values_of("*2\r\n$1\r\nA\r\n$-1\r\n", NOPERM, NOPERM);
    values_of("-CLUSTERDOWN\r\n", NOPERM, "-CLUSTERDOWN\r\n");
}

static void values_that_do_not_fit(void **state)
{
    (void)state;
    values_of("*2\r\n$1\r\nA\r\n$-1\r\n", "*1\r\n$1\r\nB\r\n", ODD);
    values_of("*2\r\n$1\r\nA\r\n$-1\r\n", "$1\r\nB\r\n", ODD);
    values_of("*-1\r\n", "*1\r\n$1\r\nB\r\n", ODD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_way),
        cmocka_unit_test(picks_from_where_it_is_told),
        cmocka_unit_test(values_in_order),
        cmocka_unit_test(values_and_an_error),
        cmocka_unit_test(values_that_do_not_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
