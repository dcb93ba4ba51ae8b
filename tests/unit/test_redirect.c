/* Tests of MOVED and ASK: the slot, the address, and the node. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "upstream/node/node.h"
#include "upstream/node/not_run.h"

static void test_what_is_named(void **state)
{
    static const struct {
        const char *reply;
        bool is_ask;
        uint16_t slot, port;
        const char *host;
    } rows[] = {
        {"-MOVED 3999 127.0.0.1:6381\r\n", false, 3999, 6381, "127.0.0.1"},
        {"-ASK 0 10.0.0.7:7000\r\n", true, 0, 7000, "10.0.0.7"},
        {"-MOVED 16383 ::1:7002\r\n", false, 16383, 7002, "::1"},
        {"-MOVED 1 [fe80::1]:7002\r\n", false, 1, 7002, "fe80::1"},
        {"-MOVED 1 node-3.example:65535\r\n", false, 1, 65535, "node-3.example"},
        {"-MOVED 1 :6381\r\n", false, 1, 6381, ""},
        {"-MOVED 1 ?:6381\r\n", false, 1, 6381, ""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct redirect redirect;
        assert_true(redirect_parse(slice_str(rows[i].reply), &redirect));
        assert_int_equal(redirect.is_ask, rows[i].is_ask);
        assert_int_equal(redirect.slot, rows[i].slot);
        assert_int_equal(redirect.port, rows[i].port);
        assert_int_equal(redirect.host.len, strlen(rows[i].host));
        assert_memory_equal(redirect.host.at, rows[i].host, redirect.host.len);
    }
}

static void test_what_is_no_redirect(void **state)
{
    static const char *const rows[] = {
        "",
        "-",
        "\r\n",
        "-MOVED 3999 127.0.0.1:6381",
        "-MOVED 3999 127.0.0.1:6381\n",
        "-MOVED\r\n",
        "-MOVED \r\n",
        "-MOVED 1\r\n",
        "-MOVED 1 \r\n",
        "-MOVED x 127.0.0.1:6381\r\n",
        "-MOVED -1 127.0.0.1:6381\r\n",
        "-MOVED 16384 127.0.0.1:6381\r\n",
        "-MOVED 99999999999999999999 127.0.0.1:6381\r\n",
        "-MOVED 1 127.0.0.1\r\n",
        "-MOVED 1 127.0.0.1:\r\n",
        "-MOVED 1 127.0.0.1:0\r\n",
        "-MOVED 1 127.0.0.1:65536\r\n",
        "-MOVED 1 127.0.0.1:x\r\n",
        "-ASKING 1 127.0.0.1:7000\r\n",
        "+MOVED 1 127.0.0.1:7000\r\n",
        "-TRYAGAIN Multiple keys request during rehashing of slot\r\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct redirect redirect;
        assert_false(redirect_parse(slice_str(rows[i]), &redirect));
    }
}

static bool is_to(const char *reply, const char *text, const char *address)
{
    struct redirect redirect;
    const struct node from = {.text = (char *)"node-1:7000", .address = (char *)"10.0.0.1:7000"};
    const struct node node = {.text = (char *)text, .address = (char *)address};
    assert_true(redirect_parse(slice_str(reply), &redirect));
    return redirect_is_to(&redirect, &from, &node);
}

static void test_which_node_it_is(void **state)
{
    (void)state;
    assert_true(is_to("-MOVED 1 10.0.0.2:7001\r\n", "10.0.0.2:7001", "10.0.0.2:7001"));
    assert_true(is_to("-MOVED 1 Node-2:7001\r\n", "node-2:7001", "10.0.0.2:7001"));
    assert_true(is_to("-MOVED 1 10.0.0.2:7001\r\n", "node-2:7001", "10.0.0.2:7001"));
    assert_true(is_to("-MOVED 1 ::1:7001\r\n", "[::1]:7001", "[::1]:7001"));
    assert_false(is_to("-MOVED 1 10.0.0.2:7001\r\n", "10.0.0.2:7002", "10.0.0.2:7002"));
    assert_false(is_to("-MOVED 1 10.0.0.2:7001\r\n", "10.0.0.22:7001", "10.0.0.22:7001"));
    assert_false(is_to("-MOVED 1 10.0.0.2:7001\r\n", "", ""));
    assert_true(is_to("-MOVED 1 :7001\r\n", "10.0.0.1:7001", "10.0.0.1:7001"));
    assert_true(is_to("-MOVED 1 :7001\r\n", "node-1:7001", "10.0.0.9:7001"));
    assert_false(is_to("-MOVED 1 :7001\r\n", "10.0.0.2:7001", "10.0.0.2:7001"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_named),
        cmocka_unit_test(test_what_is_no_redirect),
        cmocka_unit_test(test_which_node_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
