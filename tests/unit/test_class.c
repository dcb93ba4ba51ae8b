/* Tests of classes: the commands of each, and the errors of impossible ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "base/why.h"
#include "limit/command/class.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static struct command_table *table;
static struct classes *classes;
static char why[256];

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    classes = classes_new();
    why[0] = '\0';
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    classes_free(classes);
    command_table_put(table);
    return 0;
}

static void define(const char *name, const char *terms)
{
    if (!class_define(classes, slice_str(name), slice_str(terms), why, sizeof why))
        fail_msg("[class %s] %s: %s", name, terms, why);
}

static void expect_refused(const char *name, const char *terms, const char *reason)
{
    if (class_define(classes, slice_str(name), slice_str(terms), why, sizeof why))
        fail_msg("[class %s] %s was taken", name, terms);
    assert_string_equal(why, reason);
}

static const struct class *class_of(const char *text)
{
    const struct class *class = class_find(classes, slice_str(text), why, sizeof why);
    if (!class)
        fail_msg("%s: %s", text, why);
    return class;
}

static void expect_unknown(const char *text, const char *reason)
{
    assert_null(class_find(classes, slice_str(text), why, sizeof why));
    assert_string_equal(why, reason);
}

static bool has(const char *class, const char *command)
{
    const struct command *row = command_by_name(table, slice_str(command));
    if (!row)
        fail_msg("no command %s", command);
    return class_has(class_of(class), table, row);
}

/* The number of commands in the class, without row 0. */
static size_t size_of_class(const char *text)
{
    size_t n = 0;
    for (size_t id = 1; id < command_table_count(table); id++)
        n += class_has(class_of(text), table, command_table_row(table, id));
    return n;
}

/* ---- built-in classes ---- */

static void built_in(void **state)
{
    (void)state;
    static const struct {
        const char *class;
        const char *command;
        bool has;
    } rows[] = {
        {"all", "get", true},
        {"all", "ping", true},
        {"all", "post", true},
        {"read", "get", true},
        {"read", "set", false},
        {"read", "ping", false},
        {"write", "set", true},
        {"write", "get", false},
        {"control", "ping", true},
        {"control", "client|setname", true},
        {"control", "client|kill", false},
        {"control", "get", false},
        {"@write", "set", true},
        {"@string", "set", true},
        {"@string", "lpush", false},
        {"@dangerous", "keys", true},
        {"@nosuch", "get", false},
        {"cmd.get", "get", true},
        {"cmd.get", "getset", false},
        {"cmd.config", "config", true},
        {"cmd.config", "config|get", true},
        {"cmd.config|get", "config|get", true},
        {"cmd.config|get", "config|set", false},
        {"cmd.config|get", "config", false},
        {"cmd.nosuch", "get", false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        if (has(rows[i].class, rows[i].command) != rows[i].has)
            fail_msg("%s in %s", rows[i].command, rows[i].class);
    assert_int_equal(size_of_class("all"), command_table_count(table) - 1);
    assert_int_equal(size_of_class("cmd.get"), 1);
    assert_int_equal(size_of_class("cmd.config"), 6);
}

static void the_unknown_command_is_in_all_only(void **state)
{
    (void)state;
    static const char *const others[] = {"read", "write", "control", "@slow", "cmd.get"};
    const struct command *unknown = command_table_row(table, 0);
    assert_true(class_has(class_of("all"), table, unknown));
    for (size_t i = 0; i < COUNT_OF(others); i++)
        assert_false(class_has(class_of(others[i]), table, unknown));
}

static void case_does_not_matter(void **state)
{
    (void)state;
    define("Heavy", "KEYS, @Dangerous, -Info, CMD.Sort");
    assert_ptr_equal(class_of("HEAVY"), class_of("heavy"));
    assert_ptr_equal(class_of("ALL"), class_of("all"));
    assert_ptr_equal(class_of("@SLOW"), class_of("@slow"));
    assert_ptr_equal(class_of("Cmd.Config|GET"), class_of("cmd.config|get"));
    assert_true(slice_eq(class_name(class_of("HEAVY")), SLICE("heavy")));
    assert_true(slice_eq(class_name(class_of("CMD.CONFIG|GET")), SLICE("cmd.config|get")));
    assert_true(slice_eq(class_name(class_of("@SLOW")), SLICE("@slow")));
    assert_true(has("heavy", "keys"));
    assert_true(has("heavy", "sort"));
    assert_false(has("heavy", "info"));
}

static void a_class_serves_every_table(void **state)
{
    (void)state;
    const struct slice categories[] = {SLICE("json"), SLICE("read")};
    struct command_table *other = command_table_new();
    command_table_add(other, &(struct command_info){.name = SLICE("json.get"),
                                                    .flags = CMD_READONLY | CMD_MODULE,
                                                    .categories = categories,
                                                    .n_categories = 2});
    define("docs", "@json");
    const struct command *row = command_by_name(other, SLICE("json.get"));
    assert_true(class_has(class_of("docs"), other, row));
    assert_true(class_has(class_of("cmd.JSON.GET"), other, row));
    assert_true(class_has(class_of("@read"), other, row));
    assert_int_equal(size_of_class("docs"), 0);
    command_table_put(other);
}

/* ---- operators' classes ---- */

static void terms_are_evaluated_left_to_right(void **state)
{
    (void)state;
    define("a", "keys, sort");
    assert_int_equal(size_of_class("a"), 2);
    define("b", "@dangerous, -info");
    assert_true(has("b", "keys"));
    assert_false(has("b", "info"));
    define("c", "@dangerous, -info, info");
    assert_true(has("c", "info"));
    define("d", "all, -read, keys");
    assert_false(has("d", "get"));
    assert_true(has("d", "keys"));
    assert_true(has("d", "set"));
    define("e", "config, - config|get");
    assert_true(has("e", "config|set"));
    assert_false(has("e", "config|get"));
    assert_int_equal(size_of_class("e"), 5);
    define("f", "get,\tset ,  del");
    assert_int_equal(size_of_class("f"), 3);
}

static void a_class_may_hold_classes(void **state)
{
    (void)state;
    define("heavy", "keys, sort");
    define("most", "read, -heavy");
    assert_true(has("most", "get"));
    assert_false(has("most", "keys"));
    define("again", "most, heavy, -cmd.get");
    assert_true(has("again", "keys"));
    assert_false(has("again", "get"));
}

static void sections_given_twice_add_up(void **state)
{
    (void)state;
    define("heavy", "keys");
    define("user", "heavy");
    define("HEAVY", "sort, -keys");
    assert_int_equal(size_of_class("heavy"), 1);
    assert_true(has("user", "sort"));
    assert_false(has("user", "keys"));
}

static void a_class_may_be_named_after_a_command(void **state)
{
    (void)state;
    define("scan", "scan, hscan");
    assert_int_equal(size_of_class("scan"), 2);
    assert_int_equal(size_of_class("cmd.scan"), 1);
    define("walks", "scan, keys");
    assert_int_equal(size_of_class("walks"), 3);
}

static void names_that_a_class_cannot_have(void **state)
{
    (void)state;
    static const char *const taken[] = {"all",         "read",     "write",     "control",
                                        "cost",        "bytes-in", "bytes-out", "inflight",
                                        "connections", "connects", "match",     "Admin"};
    static const char *const bad[] = {
        "", "two words", "a|b", "@slow", "-x", "a,b", "abcdefghijklmnopqrstuvwxyz0123456"};
    for (size_t i = 0; i < COUNT_OF(taken); i++) {
        char reason[128];
        snprintf(reason, sizeof reason, "%s is reserved: choose another name for the class",
                 taken[i]);
        expect_refused(taken[i], "get", reason);
    }
    expect_refused("cmd.x", "get", "cmd.x is reserved: choose another name for the class");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        expect_refused(
            bad[i], "get",
            "a class name has 1 to 32 characters of A-Z a-z 0-9 _ . -, and does not begin "
            "with '-'");
    define("abcdefghijklmnopqrstuvwxyz-_.012", "get");
}

static void terms_that_cannot_be(void **state)
{
    (void)state;
    expect_refused("x", "", "a command, category or class is missing in the list");
    expect_refused("x", "get,", "a command, category or class is missing in the list");
    expect_refused("x", "get, , set", "a command, category or class is missing in the list");
    expect_refused("x", "get, -", "a command, category or class is missing after '-'");
    expect_refused("x", "@", "\"@\" is not a command, category or class");
    expect_refused("x", "cmd.", "\"cmd.\" is not a command, category or class");
    expect_refused("x", "config get", "\"config get\" is not a command, category or class");
    expect_refused("x", "cmd.config get", "\"cmd.config get\" is not a command, category or class");
    expect_refused("y", "-info, @dangerous",
                   "-info has nothing to remove: list first what the class contains");
    assert_false(class_define(classes, SLICE("x"), (struct slice){NULL, 0}, why, sizeof why));
}

static void a_class_with_a_bad_term_stays_known(void **state)
{
    (void)state;
    expect_refused("heavy", "@", "\"@\" is not a command, category or class");
    assert_int_equal(size_of_class("heavy"), 0);
}

static void a_class_cannot_hold_itself(void **state)
{
    (void)state;
    expect_refused("a", "get, a", "class a refers to itself through a");
    define("b", "get");
    define("c", "b");
    define("d", "c, keys");
    expect_refused("b", "-d", "class b refers to itself through d");
}

static void a_class_must_come_before_its_use(void **state)
{
    (void)state;
    define("user", "keys, heavy");
    expect_refused("heavy", "sort",
                   "class heavy is used in class user, which comes before it: move it up");
    define("keys", "keys"); /* a command, where "keys" was used as a command before */
}

static void long_reasons_are_cut(void **state)
{
    (void)state;
    char small[12];
    char text[300];
    memset(text, 'q', sizeof text);
    assert_null(class_find(classes, slice_of(text, sizeof text), why, sizeof why));
    assert_int_equal(strlen(why), strlen("unknown class ") + WHY_SHOWN_MAX);
    assert_null(class_find(classes, slice_of(text, sizeof text), small, sizeof small));
    assert_string_equal(small, "unknown cla");
    assert_false(class_define(classes, SLICE("x"), slice_of(text, sizeof text), why, sizeof why));
}

static void unknown_classes_name_the_nearest(void **state)
{
    (void)state;
    define("heavy", "keys");
    expect_unknown("hevy", "unknown class hevy (did you mean heavy?)");
    expect_unknown("raed", "unknown class raed (did you mean read?)");
    expect_unknown("keys", "keys is a command, not a class (did you mean cmd.keys?)");
    expect_unknown("Config|Get",
                   "Config|Get is a command, not a class (did you mean cmd.Config|Get?)");
    expect_unknown("zzzzzz", "unknown class zzzzzz");
    expect_unknown("", "unknown class ");
    expect_unknown("@", "unknown class @");
    expect_unknown("cmd.", "unknown class cmd.");
    expect_unknown("cmd.config get", "unknown class cmd.config get");
}

/* ---- control ---- */

static void which_classes_are_control(void **state)
{
    (void)state;
    define("beats", "ping, echo, @transaction");
    define("mixed", "ping, get");
    define("nothing", "nosuch");
    assert_true(class_is_control(class_of("control"), table));
    assert_true(class_is_control(class_of("cmd.ping"), table));
    assert_true(class_is_control(class_of("cmd.command"), table));
    assert_true(class_is_control(class_of("@transaction"), table));
    assert_true(class_is_control(class_of("beats"), table));
    assert_true(class_is_control(class_of("cmd.client|id"), table));
    assert_false(class_is_control(class_of("cmd.client"), table)); /* CLIENT KILL is not */
    assert_false(class_is_control(class_of("all"), table));
    assert_false(class_is_control(class_of("mixed"), table));
    assert_false(class_is_control(class_of("nothing"), table));
    assert_false(class_is_control(class_of("cmd.nosuch"), table));
}

/* ---- checking ---- */

struct warnings {
    size_t n;
    char text[8][160];
};

static void on_warning(void *arg, struct slice class, struct slice unknown, struct slice near)
{
    struct warnings *warnings = arg;
    assert_true(warnings->n < COUNT_OF(warnings->text));
    snprintf(warnings->text[warnings->n++], sizeof warnings->text[0], "%.*s: %.*s -> %.*s",
             (int)class.len, class.at, (int)unknown.len, unknown.at, (int)near.len, near.at);
}

static void unknown_commands_are_warned_of(void **state)
{
    (void)state;
    struct warnings warnings = {0};
    define("heavy", "keys, sotr, @dangreous, -@json");
    define("user", "heavvy, cmd.heavvy, @slow");
    class_of("cmd.gte");
    class_of("cmd.qqqqqqqqq");
    class_of("cmd.config|gte");
    classes_check(classes, table, on_warning, &warnings);
    static const char *const expected[] = {"heavy: sotr -> sort",
                                           "heavy: @dangreous -> @dangerous",
                                           "heavy: @json -> ",
                                           "user: heavvy -> heavy",
                                           "user: heavvy -> ",
                                           "cmd.gte: gte -> get",
                                           "cmd.qqqqqqqqq: qqqqqqqqq -> ",
                                           "cmd.config|gte: config|gte -> config|get"};
    assert_int_equal(warnings.n, COUNT_OF(expected));
    for (size_t i = 0; i < warnings.n; i++)
        assert_string_equal(warnings.text[i], expected[i]);
}

static void nothing_unknown_nothing_said(void **state)
{
    (void)state;
    struct warnings warnings = {0};
    define("heavy", "keys, sort, smembers, @dangerous, -info");
    class_of("cmd.config|get");
    class_of("@slow");
    classes_check(classes, table, on_warning, &warnings);
    assert_int_equal(warnings.n, 0);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(built_in),
        TEST(the_unknown_command_is_in_all_only),
        TEST(case_does_not_matter),
        TEST(a_class_serves_every_table),
        TEST(terms_are_evaluated_left_to_right),
        TEST(a_class_may_hold_classes),
        TEST(sections_given_twice_add_up),
        TEST(a_class_may_be_named_after_a_command),
        TEST(names_that_a_class_cannot_have),
        TEST(terms_that_cannot_be),
        TEST(a_class_with_a_bad_term_stays_known),
        TEST(a_class_cannot_hold_itself),
        TEST(a_class_must_come_before_its_use),
        TEST(long_reasons_are_cut),
        TEST(unknown_classes_name_the_nearest),
        TEST(which_classes_are_control),
        TEST(unknown_commands_are_warned_of),
        TEST(nothing_unknown_nothing_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
