/*
 * Tests of errors and warnings about a configuration of valid lines: clashing addresses, and likely
 * mistakes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config_kit.h"
#include "run/config/config_lint.h"

static const struct mistake clashes[] = {
    {"[weir]\nlisten = 127.0.0.1:1\nupstream = 127.0.0.1:1\n",
     "weir.conf:3: [weir] upstream: 127.0.0.1:1 is an address that weir itself listens on (127.0.0.1:1): name the "
     "address of Redis\n"},
    {"[weir]\nlisten = 0.0.0.0:1, tls:[::1]:2\nupstream = 127.0.0.1:1\n",
     "weir.conf:3: [weir] upstream: 127.0.0.1:1 is an address that weir itself listens on (0.0.0.0:1): name the "
     "address of Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:1\nupstream = 0.0.0.0:1\n",
     "weir.conf:3: [weir] upstream: 0.0.0.0:1 is an address that weir itself listens on (127.0.0.1:1): name the "
     "address of Redis\n"},
    {"[weir]\nlisten = [::]:1\nupstream = [::1]:1\n",
     "weir.conf:3: [weir] upstream: [::1]:1 is an address that weir itself listens on ([::]:1): name the address of "
     "Redis\n"},
    {"[weir]\nlisten = redis:1\nupstream = tls:Redis:1\n",
     "weir.conf:3: [weir] upstream: tls:Redis:1 is an address that weir itself listens on (redis:1): name the address "
     "of Redis\n"},
    {"[weir]\nlisten = unix:/run/redis.sock\nupstream = unix:/run//./redis.sock\n",
     "weir.conf:3: [weir] upstream: unix:/run//./redis.sock is an address that weir itself listens on "
     "(unix:/run/redis.sock): name the "
     "address of Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:1\nlisten = 127.0.0.1:2, 127.0.0.1:6379\n",
     "weir.conf:3: [weir] listen: 127.0.0.1:6379 is the address of Redis (upstream is 127.0.0.1:6379): choose another "
     "address, or set upstream\n"},
    {"[weir]\nupstream = 127.0.0.1:6380\n",
     "weir.conf:2: [weir] upstream: 127.0.0.1:6380 is an address that weir itself listens on (127.0.0.1:6380): name "
     "the address of "
     "Redis\n"},
    {"[weir]\nlisten = 127.0.0.1:1\nupstream = a:1\n[admin]\nlisten = a:1\n",
     "weir.conf:3: [weir] upstream: a:1 is an address that weir itself listens on (a:1): name the address of Redis\n"},
    {"[admin]\nlisten = 0.0.0.0:6379\n",
     "weir.conf:2: [admin] listen: 0.0.0.0:6379 is the address of Redis (upstream is 127.0.0.1:6379): choose another "
     "address, or set upstream\n"},
    {"[weir]\nlisten = 127.0.0.1:1\n[admin]\nlisten = 127.0.0.1:1\n",
     "weir.conf:4: [admin] listen: 127.0.0.1:1 overlaps 127.0.0.1:1, which clients connect to (listen in [weir]): "
     "choose another port\n"},
    {"[weir]\nlisten = 10.0.0.1:1\n[admin]\nlisten = 0.0.0.0:1\n",
     "weir.conf:4: [admin] listen: 0.0.0.0:1 overlaps 10.0.0.1:1, which clients connect to (listen in [weir]): choose "
     "another port\n"},
    {"[weir]\nlisten = unix:/a/b\n[admin]\nsocket = /a//b\n",
     "weir.conf:4: [admin] socket: unix:/a//b is unix:/a/b, which clients connect to (listen in [weir]): choose "
     "another path\n"},
    {"[weir]\nlisten = [::1]:1, a:1\nlisten = b:1, [0::1]:1\n",
     "weir.conf:3: [weir] listen: [0::1]:1 is the same address as [::1]:1: name it once\n"},
    {"[weir]\nlisten = unix:/a/b\nlisten = unix:/a/./b\n",
     "weir.conf:3: [weir] listen: unix:/a/./b is the same address as unix:/a/b: name it once\n"},
};

static void test_addresses_that_clash(void **state)
{
    (void)state;
    check_mistakes(clashes, COUNT_OF(clashes));
}

/* localhost is resolved by this machine. */
static void test_localhost_is_looked_up(void **state)
{
    (void)state;
    struct config *config =
        load_text("[weir]\nlisten = 127.0.0.1:1, [::1]:1\nupstream = LOCALHOST:1\n");
    assert_null(config);
    assert_non_null(strstr(
        said.text, "weir.conf:3: [weir] upstream: LOCALHOST:1 is an address that weir itself "
                   "listens on"));
    assert_int_equal(said.errors, 1);
}

static void test_addresses_that_do_not_clash(void **state)
{
    static const char *const texts[] = {
        "[weir]\nlisten = 127.0.0.1:0, 127.0.0.1:0\n[admin]\nlisten = 127.0.0.1:0\n",
        /* one port, different addresses */
        "[weir]\nlisten = 127.0.0.2:1, 0.0.0.0:1, [::]:1\nupstream = 10.0.0.1:1\n",
        "[weir]\nlisten = [::]:1\nupstream = 127.0.0.1:1\n", /* IPv6 only */
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

/* ---- warnings ---- */

static void lint(const char *text)
{
    said = (struct said){0};
    write_bytes("weir.conf", text, strlen(text));
    struct config_file file = {.path = "weir.conf", .report = on_report, .arg = &said};
    struct config *config = config_read(&file, table);
    assert_non_null(config);
    config_lint(config, &file);
    config_free(config);
    config_file_fini(&file);
}

static const struct mistake hardly_meant[] = {
    {"[weir]\nlisten = [::1]:6390, unix:/a\n[policy a]\nmatch = listener:6390, listener:zz, tls:x\nall = 1/s\n",
     "warning: weir.conf:4: [policy a] match: listener:6390 binds no client, because it matches no address of listen: "
     "write listener:\\[::1]:6390\n"
     "warning: weir.conf:4: [policy a] match: listener:zz binds no client, because it matches no address of listen: "
     "write listener:\\[::1]:6390\n"
     "warning: weir.conf:4: [policy a] match: tls:x binds no client: no address of listen begins with tls:\n"},
    {"[policy a]\nmatch = user:a\nbytes-out = 10mb/s burst 40\nbytes-in = 10mb/s burst 1024\n"
     "[policy b]\nmatch = user:b\nbytes-out = 1000/s burst 40\n",
     "warning: weir.conf:3: [policy a] bytes-out: a burst of 40 is that many bytes: write burst 40mb\n"},
    {"[limit a]\napprox = 1/500ms\n[limit b]\napprox = 100/s, 99/h\napprox = 2/d\n[limit c]\nsliding = 1/s\n",
     "warning: weir.conf:2: [limit a] approx: approx rounds up: of evenly spaced calls 1/500ms lets only 1 of 2 pass: "
     "use sliding, which is exact, or funnel\n"
     "warning: weir.conf:4: [limit b] approx: approx rounds up: of evenly spaced calls 99/h lets only 98 of 99 pass: "
     "use sliding, which is exact, or funnel\n"
     "warning: weir.conf:5: [limit b] approx: approx rounds up: of evenly spaced calls 2/d lets only 1 of 2 pass: use "
     "sliding, which is exact, or funnel\n"},
    {"[policy batch]\nmatch = user:batch\nread = 5/s\n; [policy operators]\nmatch = user:ops\nadmin = yes\n",
     "warning: weir.conf:6: [policy batch] admin: this policy limits its operators: is the line [policy NAME] of the "
     "operators missing above? Give them one without limits\n"
     "warning: weir.conf:6: [policy batch] admin: makes clients of any of 2 match lines, from line 2 on, operators: "
     "is a [policy NAME] missing between them? Otherwise join the lines\n"},
    {"[policy o]\nadmin = yes\nmatch = ip:10.0.0.1, name:ops\n",
     "warning: weir.conf:3: [policy o] match: clients choose name themselves, so any client can become an operator: "
     "use user, tls or ip, or the socket of [admin]\n"},
    {"[policy o]\nadmin = yes\nmatch = user:*\n",
     "warning: weir.conf:3: [policy o] match: user:* makes all clients operators: match only the operators\n"},
    {"[policy o]\nadmin = yes\nmatch = user:a, ip:0.0.0.0/0\n",
     "warning: weir.conf:3: [policy o] match: ip:0.0.0.0/0 makes all clients operators: match only the operators\n"},
    {"[policy default]\nadmin = yes\n",
     "warning: weir.conf:2: [policy default] admin: all clients that no other policy binds become operators: give "
     "operators a policy of their own, with a match\n"},
    {"[policy a]\nmatch = user:a*\nall = 1/s\n[policy b]\nmatch = user:ab\nall = 2/s\n",
     "warning: weir.conf:4: [policy b]: binds no client: [policy a] in line 1 binds all of them before: move this "
     "policy up, or remove it\n"},
    {"[policy default]\nall = 1/s\n[policy b]\nmatch = listener:*\nall = 2/s\n",
     "warning: weir.conf:1: [policy default]: binds no client: [policy b] in line 3 binds all of them before\n"},
    {"[policy a]\nmatch = user:a\n",
     "warning: weir.conf:1: [policy a]: has no limits, so its clients are unlimited: add limits, or write priority = "
     "normal if that is intended\n"},
    {"[policy a]\nmatch = user:a\nread = 9/s, 4/s burst 5\n\nall = 5/s\nread = 5/s per policy\n",
     "warning: weir.conf:3: [policy a] read: 9/s never binds, because read = 4/s burst 5 in line 3 is stricter: "
     "remove one of them\n"},
    {"[policy a]\nmatch = user:a\nread = 9/s over delay 10s\nwrite = 9/s over delay 5s\n",
     "warning: weir.conf:3: [policy a] read: commands may wait 10 s, but clients time out earlier (Jedis after 2 s, "
     "go-redis after 3 s, others after 5 s): delay less, or refuse\n"},
    {"[policy a]\nmatch = user:a;alice\nall = 1/s\n",
     "warning: weir.conf:2: [policy a] match: user:a;alice matches only texts that contain ;: separate terms by "
     "commas: user:a, user:alice\n"},
    {"[policy a]\nmatch = user:x, name:a|name:b|c\nall = 1/s\n",
     "warning: weir.conf:2: [policy a] match: name:a|name:b|c matches only texts that contain |: separate terms by "
     "commas: name:a, name:b\n"},
    {"[policy a]\nmatch = user:x\nmatch = user:/free-.*/\nall = 1/s\n",
     "warning: weir.conf:3: [policy a] match: user:/free-.*/ is a pattern of * and ?, not a regular expression: write "
     "user:free-*\n"},
    {"[policy a]\nmatch = user:^free-.+$, tls:~web\nall = 1/s\n",
     "warning: weir.conf:2: [policy a] match: user:^free-.+$ is a pattern of * and ?, not a regular expression: write "
     "user:free-*\n"
     "warning: weir.conf:2: [policy a] match: tls:~web is a pattern of * and ?, not a regular expression: write "
     "tls:web\n"},
    {"[policy a]\nmatch = user:free-\\d+, user:(a|b)-*, user:x[0-9]+\nall = 1/s\n",
     "warning: weir.conf:2: [policy a] match: user:free-\\d+ is a pattern, not a regular expression: * matches any "
     "text, ? one character, [abc] one of these\n"
     "warning: weir.conf:2: [policy a] match: user:(a|b)-* is a pattern, not a regular expression: * matches any "
     "text, ? one character, [abc] one of these\n"
     "warning: weir.conf:2: [policy a] match: user:x[0-9]+ is a pattern, not a regular expression: * matches any "
     "text, ? one character, [abc] one of these\n"},
    {"[policy a]\nmatch = user:\"a\"\nall = 1/s\n",
     "warning: weir.conf:2: [policy a] match: user:\"a\" matches only texts that contain the quotes: write user:a\n"},
    {"[policy x-MOVED]\nmatch = user:a\nall = 1/s\n[class ERR]\ncommands = get\n",
     "warning: weir.conf:1: [policy x-MOVED]: refusals contain this name, and client libraries act on MOVED in an "
     "error: choose another name\n"
     "warning: weir.conf:4: [class ERR]: refusals contain this name, and client libraries act on ERR in an error: "
     "choose another name\n"},
    {"[cost]\nget = 5\nset = 2\nGET = 7\n",
     "warning: weir.conf:4: [cost] GET: given twice: the line in line 2 has no effect\n"},
    {"[weir]\nname = \"eu\"\n",
     "warning: weir.conf:2: [weir] name: the quotes are part of the value: write name = eu without quotes\n"},
    {"[policy default]\ncmd.flushal = deny\n",
     "warning: weir.conf:2: [policy default] cmd.flushal: flushal is not a known command (did you mean flushall?): "
     "the line denies nothing\n"},
};

static void test_what_can_hardly_be_meant(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(hardly_meant); i++) {
        lint(hardly_meant[i].text);
        assert_string_equal(said.text, hardly_meant[i].said);
        assert_int_equal(said.errors, 0);
    }
}

static void test_what_is_meant(void **state)
{
    static const char *const texts[] = {
        "",
        "[limit a]\napprox = 100/s, 100000/h\n[limit b]\nsliding = 1/s\n",
        "[policy o]\nmatch = user:ops, user:alice, ip:10.0.0.1\nadmin = yes\n",
        "[policy o]\nmatch = user:a\nmatch = name:b\nadmin = no\nall = 1/s\n",
        "[weir]\nmode = shadow\n[policy a]\nmatch = user:a\n[policy default]\n",
        "[policy a]\nmatch = user:a\npriority = normal\n[policy b]\nmatch = user:a*\nweight = 5\n",
        "[policy a]\nmatch = user:a\nwrite = 200/s burst 400, 10000/h\nall = 9/s over delay 5s\ncmd.keys = deny\n",
        "[policy moved]\nmatch = user:svc.*, user:[0-9]*, name:*.example.com, key:^a;b|c, name:it's\nall = 1/s\n",
        "[weir]\nlisten = unix:/a\n[policy MOVEDX]\nmatch = user:a?c, user:[!-/], user:a\\+, listener:unix:/*, ip:10.0.0.0/8\nall = 1/s\n",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        lint(texts[i]);
        assert_string_equal(said.text, "");
    }
}

/*
 * 65 patterns give a warning, since each client is compared with each. 65 names and prefixes give
 * none.
 */
static void test_many_patterns(void **state)
{
    static char text[8192];
    (void)state;
    for (int is_pattern = 0; is_pattern < 2; is_pattern++) {
        size_t len = (size_t)snprintf(text, sizeof text, "[policy a]\nall = 1/s\n");
        for (int i = 0; i < 65; i++)
            len += (size_t)snprintf(text + len, sizeof text - len, "match = user:%s%d*%s\n",
                                    is_pattern ? "*" : "", i, is_pattern ? "x" : "");
        lint(text);
        assert_int_equal(said.warnings, is_pattern);
        assert_true(!is_pattern || strstr(said.text, "have 65 patterns") != NULL);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_addresses_that_clash),
        cmocka_unit_test(test_localhost_is_looked_up),
        cmocka_unit_test(test_addresses_that_do_not_clash),
        cmocka_unit_test(test_what_can_hardly_be_meant),
        cmocka_unit_test(test_what_is_meant),
        cmocka_unit_test(test_many_patterns),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
