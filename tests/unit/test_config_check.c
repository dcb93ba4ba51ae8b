/*
 * What is wrong with a configuration whose every line is good: addresses that clash.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config_kit.h"

static const struct mistake clashes[] = {
    {"[weir]\nlisten = 127.0.0.1:1\nupstream = 127.0.0.1:1\n",
     "weir.conf:3: [weir] upstream: 127.0.0.1:1 is where weir itself listens (127.0.0.1:1): name the address of Redis\n"},
    {"[weir]\nlisten = 0.0.0.0:1, tls:[::1]:2\nupstream = 127.0.0.1:1\n",
     "weir.conf:3: [weir] upstream: 127.0.0.1:1 is where weir itself listens (0.0.0.0:1): name the address of Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:1\nupstream = 0.0.0.0:1\n",
     "weir.conf:3: [weir] upstream: 0.0.0.0:1 is where weir itself listens (127.0.0.1:1): name the address of Redis\n"},
    {"[weir]\nlisten = [::]:1\nupstream = [::1]:1\n",
     "weir.conf:3: [weir] upstream: [::1]:1 is where weir itself listens ([::]:1): name the address of Redis\n"},
    {"[weir]\nlisten = redis:1\nupstream = tls:Redis:1\n",
     "weir.conf:3: [weir] upstream: tls:Redis:1 is where weir itself listens (redis:1): name the address of Redis\n"},
    {"[weir]\nlisten = unix:/run/redis.sock\nupstream = unix:/run//./redis.sock\n",
     "weir.conf:3: [weir] upstream: unix:/run//./redis.sock is where weir itself listens (unix:/run/redis.sock): name the "
     "address of Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:1\nlisten = 127.0.0.1:2, 127.0.0.1:6379\n",
     "weir.conf:3: [weir] listen: 127.0.0.1:6379 is where weir looks for Redis (upstream is 127.0.0.1:6379): choose another, "
     "or set upstream\n"},
    {"[weir]\nupstream = 127.0.0.1:6380\n",
     "weir.conf:2: [weir] upstream: 127.0.0.1:6380 is where weir itself listens (127.0.0.1:6380): name the address of "
     "Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:1\nupstream = a:1\n[admin]\nlisten = a:1\n",
     "weir.conf:3: [weir] upstream: a:1 is where weir itself listens (a:1): name the address of Redis\n"},
    {"[admin]\nlisten = 0.0.0.0:6379\n",
     "weir.conf:2: [admin] listen: 0.0.0.0:6379 is where weir looks for Redis (upstream is 127.0.0.1:6379): choose "
     "another, or set upstream\n"},
    {"[weir]\nlisten = 127.0.0.1:1\n[admin]\nlisten = 127.0.0.1:1\n",
     "weir.conf:4: [admin] listen: 127.0.0.1:1 meets 127.0.0.1:1, where clients connect (listen in [weir]): give it a "
     "port of its own\n"},
    {"[weir]\nlisten = 10.0.0.1:1\n[admin]\nlisten = 0.0.0.0:1\n",
     "weir.conf:4: [admin] listen: 0.0.0.0:1 meets 10.0.0.1:1, where clients connect (listen in [weir]): give it a port "
     "of its own\n"},
    {"[weir]\nlisten = unix:/a/b\n[admin]\nsocket = /a//b\n",
     "weir.conf:4: [admin] socket: unix:/a//b is unix:/a/b, where clients connect (listen in [weir]): give it a path of "
     "its own\n"},
    {"[weir]\nlisten = [::1]:1, a:1\nlisten = b:1, [0::1]:1\n",
     "weir.conf:3: [weir] listen: [0::1]:1 is the same place as [::1]:1: name it once\n"},
    {"[weir]\nlisten = unix:/a/b\nlisten = unix:/a/./b\n",
     "weir.conf:3: [weir] listen: unix:/a/./b is the same place as unix:/a/b: name it once\n"},
};

static void test_addresses_that_clash(void **state)
{
    (void)state;
    check_mistakes(clashes, COUNT_OF(clashes));
}

/* localhost is what this machine says it is. */
static void test_localhost_is_looked_up(void **state)
{
    (void)state;
    struct config *config = load_text("[weir]\nlisten = 127.0.0.1:1, [::1]:1\nupstream = LOCALHOST:1\n");
    assert_null(config);
    assert_non_null(strstr(said.text, "weir.conf:3: [weir] upstream: LOCALHOST:1 is where weir itself listens"));
    assert_int_equal(said.errors, 1);
}

static void test_addresses_that_do_not_clash(void **state)
{
    static const char *const texts[] = {
        "[weir]\nlisten = 127.0.0.1:0, 127.0.0.1:0\n[admin]\nlisten = 127.0.0.1:0\n",
        "[weir]\nlisten = 127.0.0.2:1, 0.0.0.0:1, [::]:1\nupstream = 10.0.0.1:1\n", /* of one port, each with its own words */
        "[weir]\nlisten = [::]:1\nupstream = 127.0.0.1:1\n",                        /* no IPv4 comes in there */
        "[weir]\nlisten = 127.0.0.1:1\nupstream = 127.0.0.2:1\n",
        "[weir]\nlisten = a:1\nupstream = b:1\n[admin]\nlisten = c:1\n",
        "[weir]\nlisten = unix:/a/b\nupstream = unix:/a/bc\n[admin]\nsocket = /a\n",
        "[weir]\nlisten = unix:/a/b/c\nupstream = unix:/a/b\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        struct config *config = load_text(texts[i]);
        assert_string_equal(said.text, "");
        assert_non_null(config);
        config_free(config);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_that_clash),
        cmocka_unit_test(test_localhost_is_looked_up),
        cmocka_unit_test(test_addresses_that_do_not_clash),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
