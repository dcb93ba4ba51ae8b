/*
 * Tests that AUTH and HELLO are parsed in whole, from left to right, before any part takes effect.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "front/route/request.h"
#include "resp/emit.h"

#define MAX_WORDS 16

/* "HELLO 3 AUTH u p" as a request; '_' in a word is a blank. */
static struct slice request_of(const char *line, char *out)
{
    static char text[512];
    struct slice words[MAX_WORDS];
    size_t n = 0;
    strcpy(text, line);
    for (char *word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) {
        for (char *at = word; *at != '\0'; at++)
            *at = *at == '_' ? ' ' : *at;
        words[n++] = slice_str(word);
    }
    return slice_of(out, emit_array(out, words, n));
}

static void good_hellos(void **state)
{
    static const struct {
        const char *line, *user, *password, *name;
        int protocol;
    } cases[] = {
        {"HELLO", NULL, NULL, NULL, 0},
        {"HELLO 2", NULL, NULL, NULL, 2},
        {"hello 3 auth u p", "u", "p", NULL, 3},
        {"HELLO 3 SETNAME n AUTH u p", "u", "p", "n", 3},
        {"HELLO 3 AUTH auth setname SETNAME auth", "auth", "setname", "auth", 3},
        {"HELLO 2 SETNAME a SETNAME b", NULL, NULL, "b", 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bytes[1024], error[HELLO_ERROR_ROOM];
        struct hello hello;
        assert_true(hello_read(&hello, request_of(cases[i].line, bytes), error));
        assert_int_equal(hello.protocol, cases[i].protocol);
        assert_int_equal(hello.has_auth, cases[i].user != NULL);
        assert_int_equal(hello.has_name, cases[i].name != NULL);
        if (cases[i].user != NULL) {
            assert_true(slice_eq(hello.user, slice_str(cases[i].user)));
            assert_true(slice_eq(hello.password, slice_str(cases[i].password)));
        }
        if (cases[i].name != NULL)
            assert_true(slice_eq(hello.name, slice_str(cases[i].name)));
    }
}

static void bad_hellos(void **state)
{
    static const char *const cases[][2] = {
        {"HELLO x", "ERR Protocol version is not an integer or out of range"},
        {"HELLO AUTH u p", "ERR Protocol version is not an integer or out of range"},
        {"HELLO 4", "NOPROTO unsupported protocol version"},
        {"HELLO 1 AUTH u p", "NOPROTO unsupported protocol version"},
        {"HELLO 3 BOGUS", "ERR Syntax error in HELLO option 'BOGUS'"},
        {"HELLO 3 AUTH u", "ERR Syntax error in HELLO option 'AUTH'"},
        {"HELLO 3 AUTH u p BOGUS", "ERR Syntax error in HELLO option 'BOGUS'"},
        {"HELLO 3 AUTH u p auth v q", "ERR Syntax error in HELLO option 'auth'"},
        {"HELLO 3 SETNAME", "ERR Syntax error in HELLO option 'SETNAME'"},
        {"HELLO 3 SETNAME b_d AUTH u p", HELLO_BAD_NAME},
        {"HELLO 3 AUTH u p SETNAME b_d", HELLO_BAD_NAME},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bytes[1024], error[HELLO_ERROR_ROOM];
        struct hello hello;
        assert_false(hello_read(&hello, request_of(cases[i][0], bytes), error));
        assert_string_equal(error, cases[i][1]);
    }
}

static void a_hello_logs_in_as_far_as_it_can_be_read(void **state)
{
    static const struct {
        const char *line;
        bool logs_in;
    } cases[] = {
        {"HELLO", false},
        {"HELLO 3", false},
        {"HELLO 3 AUTH u p", true},
        {"HELLO 3 SETNAME n AUTH u p", true},
        {"HELLO 3 AUTH u p AUTH v q", true},
        {"HELLO 3 AUTH u p nonsense", true},
        {"HELLO 3 AUTH u", false},
        {"HELLO 3 SETNAME auth", false},
        {"HELLO 3 nonsense AUTH u p", false},
        {"HELLO 4 AUTH u p", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bytes[1024];
        if (hello_logs_in(request_of(cases[i].line, bytes)) != cases[i].logs_in)
            fail_msg("%s", cases[i].line);
    }
}

static void logins(void **state)
{
    char bytes[1024], error[HELLO_ERROR_ROOM];
    struct hello hello;
    (void)state;
    assert_true(hello_read_auth(&hello, request_of("AUTH p", bytes), error));
    assert_true(hello.is_short && slice_eq(hello.user, SLICE("default")) &&
                slice_eq(hello.password, SLICE("p")));
    assert_true(hello_read_auth(&hello, request_of("AUTH u p", bytes), error));
    assert_true(!hello.is_short && slice_eq(hello.user, SLICE("u")) &&
                slice_eq(hello.password, SLICE("p")));
    assert_false(hello_read_auth(&hello, request_of("AUTH u p q", bytes), error));
    assert_string_equal(error, "ERR syntax error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(good_hellos),
        cmocka_unit_test(bad_hellos),
        cmocka_unit_test(a_hello_logs_in_as_far_as_it_can_be_read),
        cmocka_unit_test(logins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
