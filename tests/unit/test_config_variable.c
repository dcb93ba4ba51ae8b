/*
 * Tests of environment variables in a configuration: their expansion, the errors, and that no
 * message reveals a value.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config_kit.h"
#include "dice.h"
#include "run/config/config_edit.h"
#include "run/config/config_variable.h"

static int set_variables(void **state)
{
    (void)state;
    setenv("PORT", "7000", 1);
    setenv("REDIS_URL", "redis://:hunter22@host:6379", 1);
    setenv("EMPTY", "", 1);
    setenv("BLANKS", "  a:1 ", 1);
    setenv("SHORT", "x", 1);
    setenv("BELL", "a\ab", 1);
    setenv("_a1", "under", 1);
    unsetenv("UNSET");
    return 0;
}

static void assert_expands(const char *text, const char *expected)
{
    char why[CONFIG_WHY_ROOM] = "", *out = NULL;
    if (!config_expand(slice_str(text), &out, (struct why){why, sizeof why}))
        fail_msg("%s: %s", text, why);
    assert_string_equal(out, expected);
    free(out);
}

static void test_expanding(void **state)
{
    (void)state;
    assert_expands("a", "a");
    assert_expands("${PORT}", "7000");
    assert_expands("127.0.0.1:${PORT}, 127.0.0.2:${PORT}", "127.0.0.1:7000, 127.0.0.2:7000");
    assert_expands("${UNSET:-5}${PORT:-6}", "57000");
    assert_expands("${EMPTY}${EMPTY:-e}${UNSET:-}", "e");
    assert_expands("${_a1}", "under");
    assert_expands("$${PORT} $$ $PORT $", "${PORT} $$ $PORT $");
    assert_expands("$$${PORT}", "$${PORT}");
    assert_expands("${PORT}$${PORT}", "7000${PORT}");
    assert_expands("${UNSET:-${PORT}", "${PORT"); /* a default ends with the first } */
}

static const struct mistake mistakes[] = {
    {"[weir]\nworkers = ${UNSET}\n",
     "weir.conf:2: [weir] workers: ${UNSET} is not set in the environment: set it, or write ${UNSET:-default}\n"},
    {"[weir]\nworkers = 1${PORT\n",
     "weir.conf:2: [weir] workers: the } of ${ is missing; write $${ for ${ itself\n"},
    {"[weir]\nworkers = ${}\n",
     "weir.conf:2: [weir] workers: \"\" is not the name of a variable: write ${NAME} or ${NAME:-default}; write $${ "
     "for ${ itself\n"},
    {"[weir]\nworkers = ${1A}\n",
     "weir.conf:2: [weir] workers: \"1A\" is not the name of a variable: write ${NAME} or ${NAME:-default}; write $${ "
     "for ${ itself\n"},
    {"[weir]\nworkers = ${EMPTY}\n", "weir.conf:2: [weir] workers: a value is missing\n"},
    {"[weir]\nworkers = ${BELL}\n",
     "weir.conf:2: [weir] workers: ${BELL} holds a control character (0x07)\n"},
    {"[weir]\nworkers = ${SHORT}\n",
     "weir.conf:2: [weir] workers: \"${SHORT}\" is not a count: write a whole number, or one with k, m or g (10k)\n"},
    {"[policy p]\nmatch = ${UNSET}\nall = ${UNSET}\n",
     "weir.conf:2: [policy p] match: ${UNSET} is not set in the environment: set it, or write ${UNSET:-default}\n"
     "weir.conf:3: [policy p] all: ${UNSET} is not set in the environment: set it, or write ${UNSET:-default}\n"},
};

static void test_mistakes(void **state)
{
    (void)state;
    check_mistakes(mistakes, COUNT_OF(mistakes));
}

static void test_the_values_mean_what_they_hold(void **state)
{
    (void)state;
    struct config *config = load_text("[weir]\nlisten = 127.0.0.1:${PORT}\nupstream = ${BLANKS}\n"
                                      "[policy default]\nall = ${UNSET:-5/s} burst ${PORT}\n");
    assert_string_equal(said.text, "");
    assert_int_equal(config->listens[0].address.port, 7000);
    assert_string_equal(config->sources.addresses[0].host, "a");
    assert_int_equal(policies_at(config->rules.policies, 0)->limits[0].rate.burst, 7000);
    config_free(config);
}

/* Every key, and every kind of line in other sections, gives an error for a nonsense value. */
static void test_no_message_tells_a_secret(void **state)
{
    static const char *const lines[] = {
        "[weir]\nlisten = ${REDIS_URL}\n",
        "[weir]\nlisten = unix:/x, ${REDIS_URL} proxy\n",
        "[weir]\nupstream = ${REDIS_URL}\n",
        "[weir]\nupstream = tls:${REDIS_URL}\n",
        "[weir]\nworkers = ${REDIS_URL}\n",
        "[weir]\nmode = ${REDIS_URL}\n",
        "[weir]\nidentity = ${REDIS_URL}\n",
        "[weir]\nerror-prefix = ${REDIS_URL}\n",
        "[weir]\nlog = ${REDIS_URL}\n",
        "[weir]\nproxy-protocol-from = ${REDIS_URL}\n",
        "[weir]\ntls-protocols = ${REDIS_URL}\n",
        "[weir]\nlimit-prefix = limit:%u${REDIS_URL}\n",
        "[admin]\nlisten = ${REDIS_URL}\n",
        "[admin]\nhost = ${REDIS_URL}\n",
        "[admin]\nsocket = ${REDIS_URL}\n",
        "[class c]\ncommands = ${REDIS_URL}\n",
        "[class c]\ncommands = get, @${REDIS_URL}\n",
        "[cost]\nget = ${REDIS_URL}\n",
        "[limit n]\nfixed = ${REDIS_URL}\n",
        "[limit n]\nfixed = 1/s\ntz = ${REDIS_URL}\n",
        "[policy p]\nmatch = ${REDIS_URL}\n",
        "[policy p]\nmatch = ip:${REDIS_URL}\n",
        "[policy default]\nall = ${REDIS_URL}\n",
        "[policy default]\nall = 5/s over ${REDIS_URL}\n",
        "[policy default]\nadmin = ${REDIS_URL}\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lines); i++) {
        config_free(load_text(lines[i]));
        if (said.errors + said.warnings == 0 || strstr(said.text, "hunter") != NULL ||
            strstr(said.text, "ter22") != NULL)
            fail_msg("%s%s", lines[i], said.text);
    }
}

/* No message contains four consecutive bytes of the variable's value. */
static void test_pieces_are_hidden(void **state)
{
    (void)state;
    uint64_t seed = 5;
    for (uint64_t round = 0; round < dice_rounds(2000); round++) {
        char value[24] = "", message[80] = "", out[256];
        for (size_t i = 0; i + 1 < sizeof value; i++)
            value[i] = "abcd\""[dice_below(&seed, 5)];
        for (size_t i = 0; i + 1 < sizeof message; i++)
            message[i] = "abcd\""[dice_below(&seed, 5)];
        setenv("VALUE", value, 1);
        config_hide(SLICE("x${VALUE}"), message, out, sizeof out);
        for (size_t i = 0; i + 4 < sizeof value; i++) {
            char piece[5] = "";
            memcpy(piece, value + i, 4);
            if (strstr(out, piece) != NULL)
                fail_msg("round %u: %s of %s is in %s", (unsigned)round, piece, value, out);
        }
    }
}

static void test_a_long_value_is_refused(void **state)
{
    (void)state;
    char *text = malloc(CONFIG_EXPANDED_MAX + 2);
    memset(text, 'x', CONFIG_EXPANDED_MAX + 1);
    text[CONFIG_EXPANDED_MAX + 1] = '\0';
    setenv("LONG", text, 1);
    free(text);
    assert_null(load_text("[weir]\nupstream-user = ${LONG}\n"));
    assert_string_equal(
        said.text,
        "weir.conf:2: [weir] upstream-user: is longer than 65536 bytes with the values of "
        "its variables\n");
    unsetenv("LONG");
}

/* A copy keeps the raw text of a line with variables. A replaced line has no raw text. */
static void test_a_line_that_is_replaced(void **state)
{
    (void)state;
    const struct line_name all = {SECTION_POLICY, SLICE("default"), SLICE("all")};
    write_bytes("weir.conf", "[policy default]\nall = ${PORT}/s\n", 32);
    struct config_file file = {.path = "weir.conf", .report = on_report, .arg = &said}, copy;
    config_file_read(&file);
    config_file_copy(&copy, &file);
    assert_string_equal(file.entries[0].raw, "${PORT}/s");
    assert_string_equal(copy.entries[0].raw, "${PORT}/s");
    config_file_replace(&copy, &all, "5/s");
    assert_null(copy.entries[0].raw);
    config_file_replace(&file, &all, NULL);
    assert_int_equal(file.n_entries, 0);
    config_file_fini(&copy);
    config_file_fini(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_expanding, set_variables),
        cmocka_unit_test_setup(test_mistakes, set_variables),
        cmocka_unit_test_setup(test_the_values_mean_what_they_hold, set_variables),
        cmocka_unit_test_setup(test_no_message_tells_a_secret, set_variables),
        cmocka_unit_test_setup(test_pieces_are_hidden, set_variables),
        cmocka_unit_test_setup(test_a_long_value_is_refused, set_variables),
        cmocka_unit_test_setup(test_a_line_that_is_replaced, set_variables),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
