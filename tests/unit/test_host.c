/* Tests of the Host headers that the operators' HTTP server accepts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "admin/host.h"

static const char *const known[] = {
    "127.0.0.1",
    "127.0.0.1:9380",
    "10.1.2.3:80",
    "192.0.2.1.",
    "[::1]",
    "[::1]:9380",
    "[2001:DB8::7]:1",
    "localhost",
    "LocalHost:9380",
    "localhost.",
    "localhost.:9380",
    " localhost ",
    "weir",
    "WEIR:9380",
    "weir.:9380",
    "Ops.Example.",
    "ops.example:443",
    "[::ffff:127.0.0.1]",
    "dotted",
};

static const char *const unknown[] = {
    "",
    ".",
    ":",
    ":9380",
    "evil.example",
    "evil.example:9380",
    "localhost.evil.example",
    "xlocalhost",
    "evil.weir",
    "weir.evil",
    "::1",
    "[::1",
    "[]",
    "[::1]x",
    "[::1]:80x",
    "[127.0.0.1]",
    "[evil]",
    "127.0.0.1x",
    "127.0.0.1:x",
    "127.1",
    "0x7f.0.0.1",
    "2130706433",
    "127.0.0.1:80:80",
    "weir,ops.example",
    "localhost..",
    "[::1]:80]",
    "]",
    "[fe80::1%lo]",
};

static const struct slice names = {"weir, ops.example,,dotted.", 26};

static void hosts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (!host_is_known(slice_str(known[i]), names))
            fail_msg("%s is not known", known[i]);
    for (size_t i = 0; i < sizeof unknown / sizeof unknown[0]; i++)
        if (host_is_known(slice_str(unknown[i]), names))
            fail_msg("%s is known", unknown[i]);
    assert_true(host_is_known(SLICE("localhost"), slice_of("", 0)));
    assert_false(host_is_known(SLICE("weir"), slice_of("", 0)));
    assert_false(host_is_known(slice_of("", 0), slice_of("", 0)));
}

static void host_names(void **state)
{
    (void)state;
    assert_true(host_is_name(SLICE("weir")));
    assert_true(host_is_name(SLICE("ops-1.Example_x.")));
    assert_false(host_is_name(SLICE("")));
    assert_false(host_is_name(SLICE(".example")));
    assert_false(host_is_name(SLICE("*.example")));
    assert_false(host_is_name(SLICE("weir:9380")));
    assert_false(host_is_name(SLICE("a b")));
    char text[300];
    memset(text, 'a', sizeof text);
    assert_true(host_is_name(slice_of(text, 253)));
    assert_false(host_is_name(slice_of(text, 254)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(hosts), cmocka_unit_test(host_names)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
