/* Tests of names of subjects as operators write them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "limit/policy/named_subject.h"

static char why[256];
static struct named_subject named;

static bool read_as(const char *sources, const char *name)
{
    struct identity identity;
    assert_true(identity_parse(&identity, slice_str(sources), why, sizeof why));
    return named_subject_read(&named, &identity, slice_str(name), why, sizeof why);
}

static void assert_fact(const char *name, struct slice fact, const char *expected)
{
    if (!slice_eq(fact, slice_str(expected)))
        fail_msg("%s: \"%.*s\" is not \"%s\"", name, (int)fact.len, fact.at, expected);
}

static void each_kind_is_read(void **state)
{
    (void)state;
    struct ip ip;
    assert_true(read_as("user, ip", "user:ann"));
    assert_fact("user:ann", named.facts.user, "ann");
    assert_true(read_as("name", "name:50%25/a%20b"));
    assert_fact("name", named.facts.name, "50%/a b");
    assert_true(read_as("tls, user", "tls:a.example"));
    assert_fact("tls", named.facts.tls, "a.example");
    assert_true(read_as("listener", "listener:127.0.0.1:6380"));
    assert_fact("listener", named.facts.listener, "127.0.0.1:6380");
    assert_true(read_as("key:2, ip", "key:acme:eu"));
    assert_fact("key", named.facts.key, "acme:eu");
    assert_true(read_as("key:1", "key:"));
    assert_non_null(named.facts.key.at);
    assert_true(read_as("user", "ip:10.1.2.3"));
    assert_true(ip_parse(SLICE("10.1.2.3"), &ip) && ip_eq(&ip, &named.facts.ip));
    assert_true(read_as("ip/24, ip6/64", "ip:10.1.2.0/24"));
    assert_true(read_as("ip/24, ip6/64", "ip:2001:db8::/64"));
    assert_true(read_as("user, ip", "ip:unix"));
    assert_int_equal(named.facts.ip.family, 0);
    assert_true(named.is_whole);
    assert_true(read_as("ip/24, ip6/64", "ip:10.1.2.0/24") && !named.is_whole);
    assert_true(read_as("key:1", "key:acme") && !named.is_whole);
    assert_true(named_subject_is_pattern(SLICE("user:free-*")) &&
                named_subject_is_pattern(SLICE("user:a?")));
    assert_false(named_subject_is_pattern(SLICE("listener:[::1]:6380")));
}

static void what_nobody_is_named_is_told(void **state)
{
    (void)state;
    static const struct {
        const char *sources, *name, *why;
    } cases[] = {
        {"user, ip", "usr:ann", "no such subject: usr:ann (did you mean user:ann?)"},
        {"user, ip", "User:ann", "no such subject: User:ann (did you mean user:ann?)"},
        {"user, ip", "usr", "no such subject: usr is not a valid name (did you mean user:...?)"},
        {"user, ip", "nobody",
         "no such subject: nobody is not a valid name: write user:NAME, ip:ADDRESS, name:NAME, tls:NAME, "
         "listener:ADDRESS or "
         "key:BEGINNING"},
        {"user, ip", "tenant:x",
         "no such subject: tenant:x: write user:NAME, ip:ADDRESS, name:NAME, tls:NAME, listener:ADDRESS or "
         "key:BEGINNING"},
        {"user, ip", "",
         "no such subject:  is not a valid name: write user:NAME, ip:ADDRESS, name:NAME, tls:NAME, "
         "listener:ADDRESS or key:BEGINNING"},
        {"user, ip", "user:", "no such subject: user: is not a name"},
        {"user, ip", "user:a b", "no such subject: user:a b (did you mean user:a%20b?)"},
        {"user, ip", "user:50%", "no such subject: user:50% (did you mean user:50%25?)"},
        {"user, ip", "user:%4", "no such subject: user:%4 (did you mean user:%254?)"},
        {"user, ip", "user:%41", "no such subject: user:%41 (did you mean user:A?)"},
        {"user, ip", "name:x",
         "no such subject: name:x: identity in [weir] names no subject by name"},
        {"user, ip", "ip:10.1.2",
         "no such subject: ip:10.1.2 is not an address: write ip:192.0.2.7 or ip:10.1.2.0/24"},
        {"user, ip", "ip:10.1.2.3/33",
         "no such subject: ip:10.1.2.3/33 is not an address: write ip:192.0.2.7 or "
         "ip:10.1.2.0/24"},
        {"user, ip", "ip:10.1.2.0/24",
         "no such subject: ip:10.1.2.0/24: identity in [weir] uses whole addresses (did you mean ip:10.1.2.0?)"},
        {"ip/24, ip6/64", "ip:10.1.2.3",
         "no such subject: ip:10.1.2.3 (did you mean ip:10.1.2.0/24?)"},
        {"ip/24, ip6/64", "ip:2001:db8:0:0:1::",
         "no such subject: ip:2001:db8:0:0:1:: (did you mean "
         "ip:2001:db8::/64?)"},
        {"key:1, ip", "key:acme:1", "no such subject: key:acme:1 (did you mean key:acme?)"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_false(read_as(cases[i].sources, cases[i].name));
        assert_string_equal(why, cases[i].why);
    }
}

/*
 * Every name that weir prints is read back as the facts that it was made from. A name that was cut
 * is read too.
 */
static void whatever_is_named_is_read(void **state)
{
    (void)state;
    struct identity identity;
    uint64_t seed = 7;
    assert_true(identity_parse(&identity, SLICE("name, ip"), why, sizeof why));
    for (int round = 0; round < 2000; round++) {
        char text[400], name[SUBJECT_NAME_MAX];
        size_t len = 1 + dice_below(&seed, round % 2 ? 20 : sizeof text - 1);
        for (size_t i = 0; i < len; i++)
            text[i] = (char)dice_below(&seed, 256);
        struct facts facts = {.name = slice_of(text, len)};
        size_t name_len = identity_subject(&identity, &facts, name);
        if (!named_subject_read(&named, &identity, slice_of(name, name_len), why, sizeof why))
            fail_msg("%.*s: %s", (int)name_len, name, why);
        if (memmem(name, name_len, "%#", 2) == NULL)
            assert_true(slice_eq(named.facts.name, facts.name));
    }
    char huge[SUBJECT_NAME_MAX + 2] = "name:";
    memset(huge + 5, 'x', sizeof huge - 5);
    assert_false(named_subject_read(&named, &identity, slice_of(huge, SUBJECT_NAME_MAX + 1), why,
                                    sizeof why));
    assert_non_null(strstr(why, "at most 320 bytes"));
}

static void keys_are_no_connections(void **state)
{
    (void)state;
    assert_false(named_subject_is_connected(SLICE("key:acme")));
    assert_true(named_subject_is_connected(SLICE("user:key:acme")));
    assert_true(named_subject_is_connected(SLICE("ip:10.1.2.3")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_kind_is_read),
        cmocka_unit_test(what_nobody_is_named_is_told),
        cmocka_unit_test(whatever_is_named_is_read),
        cmocka_unit_test(keys_are_no_connections),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
