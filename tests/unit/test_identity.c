/* Tests of names of subjects, and of the terms of a match. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "dice.h"
#include "limit/policy/identity.h"

static char why[256];

static void assert_says(const char *part)
{
    if (!strstr(why, part))
        fail_msg("\"%s\" does not say \"%s\"", why, part);
}

static struct ip ip(const char *text)
{
    struct ip parsed = {0};
    assert_true(ip_parse(slice_str(text), &parsed));
    return parsed;
}

static struct facts facts(const char *user, const char *name, const char *address)
{
    return (struct facts){.user = slice_str(user),
                          .name = slice_str(name),
                          .ip = *address ? ip(address) : (struct ip){0}};
}

static void assert_subject(const char *sources, struct facts known, const char *expected)
{
    struct identity identity;
    char *out = malloc(SUBJECT_NAME_MAX); /* on the heap, so that the sanitizer sees the end */
    if (!identity_parse(&identity, slice_str(sources), why, sizeof why))
        fail_msg("%s: %s", sources, why);
    size_t len = identity_subject(&identity, &known, out);
    if (!slice_eq(slice_of(out, len), slice_str(expected)))
        fail_msg("%s: %.*s is not %s", sources, (int)len, out, expected);
    free(out);
}

static void first_known_source_wins(void **state)
{
    (void)state;
    assert_subject("user, ip", facts("free-17", "app", "10.1.2.3"), "user:free-17");
    assert_subject("user, ip", facts("", "app", "10.1.2.3"), "ip:10.1.2.3");
    assert_subject("user,ip", facts("", "", ""), "ip:unix");
    assert_subject(" name ,user, ip", facts("u", "app", "10.1.2.3"), "name:app");
    assert_subject("NAME, Ip", facts("u", "", "10.1.2.3"), "ip:10.1.2.3");
    assert_subject("ip", facts("u", "n", "::ffff:192.0.2.1"), "ip:192.0.2.1");
    assert_subject("ip", facts("u", "n", "2001:DB8:0:0::1"), "ip:2001:db8::1");
}

static void networks_are_masked(void **state)
{
    (void)state;
    assert_subject("ip/24, ip6/64", facts("", "", "10.1.2.3"), "ip:10.1.2.0/24");
    assert_subject("ip/24, ip6/64", facts("", "", "2001:db8:1:2:3:4:5:6"), "ip:2001:db8:1:2::/64");
    assert_subject("ip/9", facts("", "", "10.255.2.3"), "ip:10.128.0.0/9");
    assert_subject("ip/32", facts("", "", "10.255.2.3"), "ip:10.255.2.3/32");
    assert_subject("ip/1", facts("", "", "255.255.2.3"), "ip:128.0.0.0/1");
    assert_subject("ip6/128", facts("", "", "::1"), "ip:::1/128");
    assert_subject("ip6/57", facts("", "", "2001:db8:0:ff::1"), "ip:2001:db8:0:80::/57");
    assert_subject("ip/24", facts("", "", "::ffff:192.0.2.1"), "ip:192.0.2.0/24");
}

/* A client that no source names is a subject of its own, not one of an unknown group. */
static void unknown_by_all_sources_is_the_address(void **state)
{
    (void)state;
    assert_subject("user", facts("", "", "10.1.2.3"), "ip:10.1.2.3");
    assert_subject("ip/24", facts("", "", "2001:db8::1"), "ip:2001:db8::1");
    assert_subject("ip6/64", facts("", "", "10.1.2.3"), "ip:10.1.2.3");
}

static void names_are_escaped(void **state)
{
    (void)state;
    assert_subject("name", facts("", "a b%c\n\x7f\xc3\xa9", ""), "name:a%20b%25c%0A%7F%C3%A9");
    assert_subject("user", facts("a:b", "", ""), "user:a:b");
    assert_subject("user", facts("%20", "", ""), "user:%2520");
}

static size_t subject_of_user(const char *user, size_t len, char *out)
{
    struct identity identity;
    struct facts known = {.user = slice_of(user, len)};
    assert_true(identity_parse(&identity, SLICE("user"), why, sizeof why));
    return identity_subject(&identity, &known, out);
}

static void long_names_are_cut_and_told_apart(void **state)
{
    (void)state;
    char user[2000], *out = malloc(SUBJECT_NAME_MAX), *other = malloc(SUBJECT_NAME_MAX);
    memset(user, 'x', sizeof user);

    assert_int_equal(subject_of_user(user, SUBJECT_NAME_MAX - 5, out), SUBJECT_NAME_MAX);
    assert_null(memchr(out, '%', SUBJECT_NAME_MAX));
    assert_int_equal(subject_of_user(user, SUBJECT_NAME_MAX - 4, out), SUBJECT_NAME_MAX);
    assert_memory_equal(out + SUBJECT_NAME_MAX - 18, "%#", 2);

    assert_int_equal(subject_of_user(user, sizeof user, out), SUBJECT_NAME_MAX);
    user[sizeof user - 1] = 'y';
    assert_int_equal(subject_of_user(user, sizeof user, other), SUBJECT_NAME_MAX);
    assert_memory_equal(out, other, SUBJECT_NAME_MAX - 16);
    assert_memory_not_equal(out, other, SUBJECT_NAME_MAX);

    memset(user, ' ', sizeof user);
    assert_true(subject_of_user(user, sizeof user, out) > SUBJECT_NAME_MAX - 3);
    free(out);
    free(other);
}

static void any_name_is_printable_and_fits(void **state)
{
    (void)state;
    uint64_t seed = 3;
    for (int i = 0; i < 2000; i++) {
        char user[400], *out = malloc(SUBJECT_NAME_MAX);
        size_t len = 1 + dice_below(&seed, sizeof user);
        for (size_t k = 0; k < len; k++)
            user[k] = (char)(dice_below(&seed, 4) ? 'a' : dice(&seed));
        size_t written = subject_of_user(user, len, out);
        assert_in_range(written, 6, SUBJECT_NAME_MAX);
        for (size_t k = 0; k < written; k++)
            assert_in_range((unsigned char)out[k], '!', '~');
        free(out);
    }
}

static struct facts with_key(struct facts known, const char *key, size_t len)
{
    known.key = slice_of(key, len);
    return known;
}

static void listeners_name_subjects(void **state)
{
    (void)state;
    struct facts known = facts("", "", "10.1.2.3");
    known.listener = SLICE("unix:/run/weir 1.sock");
    assert_subject("listener", known, "listener:unix:/run/weir%201.sock");
    assert_subject("user, LISTENER, ip", known, "listener:unix:/run/weir%201.sock");
    known.listener = SLICE("");
    assert_subject("listener, ip", known, "ip:10.1.2.3");
}

static void keys_name_subjects(void **state)
{
    (void)state;
    static const struct {
        const char *source, *key, *expected;
    } cases[] = {
        {"key:1", "acme:users:7", "key:acme"},
        {"key:2", "acme:users:7", "key:acme:users"},
        {"key:3", "acme:users:7", "key:acme:users:7"},
        {"key:9", "acme:users:7", "key:acme:users:7"},
        {"key:1", "acme", "key:acme"},
        {"key:2", "acme:", "key:acme:"},
        {"key:1", "acme:", "key:acme"},
        {"key:2", "acme::x", "key:acme:"},
        {"key:1", ":x", "key:"},
        {"key:2", ":x:y", "key::x"},
        {"key:1", "", "key:"},
        {"KEY:32", "a b\r\n%", "key:a%20b%0D%0A%25"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_subject(cases[i].source,
                       with_key(facts("u", "n", "10.1.2.3"), cases[i].key, strlen(cases[i].key)),
                       cases[i].expected);
    assert_subject("key:1", with_key(facts("", "", ""), "\0\xff:x", 4), "key:%00%FF");
    /* a command without a key */
    assert_subject("key:2, user", facts("u", "n", "10.1.2.3"), "user:u");
    assert_subject("key:2", facts("u", "n", "10.1.2.3"), "ip:10.1.2.3");
    assert_subject("user, key:2", with_key(facts("u", "n", ""), "a:b", 3), "user:u");
    char key[3000];
    memset(key, '\n', sizeof key);
    char *out = malloc(SUBJECT_NAME_MAX);
    struct identity identity;
    assert_true(identity_parse(&identity, SLICE("key:2"), why, sizeof why));
    struct facts known = with_key(facts("", "", ""), key, sizeof key);
    assert_true(identity_subject(&identity, &known, out) <= SUBJECT_NAME_MAX);
    free(out);
}

static void whether_keys_are_needed(void **state)
{
    (void)state;
    struct facts known = facts("u", "", "10.1.2.3");
    known.listener = SLICE("x");
    known.key = SLICE("acme"); /* the key of the last command does not apply to the next one */
    static const struct {
        const char *sources;
        bool is_needed;
    } cases[] = {
        {"user, ip", false},     {"key:1", true},
        {"key:2, user", true},   {"user, key:1", false},
        {"name, key:1", true},   {"name, ip6/64, key:1", true},
        {"ip/24, key:1", false}, {"listener, key:1", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct identity identity;
        assert_true(identity_parse(&identity, slice_str(cases[i].sources), why, sizeof why));
        if (identity_needs_key(&identity, &known) != cases[i].is_needed)
            fail_msg("%s", cases[i].sources);
    }
}

static void assert_site(const char *address, const char *site)
{
    char out[SUBJECT_NAME_MAX];
    const struct facts known = facts("", "", address);
    assert_true(slice_eq(slice_of(out, identity_site(&known.ip, out)), slice_str(site)));
}

static void sites(void **state)
{
    (void)state;
    assert_site("10.1.2.3", "ip:10.1.2.3");
    assert_site("2001:db8::1:2:3:4", "ip:2001:db8::/64");
    assert_site("::ffff:10.1.2.3", "ip:10.1.2.3");
    assert_site("", "ip:unix");
}

static void addresses_whatever_the_identity(void **state)
{
    (void)state;
    char out[SUBJECT_NAME_MAX];
    struct facts known = facts("u", "n", "10.1.2.3");
    size_t len = identity_address(&known, out);
    assert_true(slice_eq(slice_of(out, len), SLICE("ip:10.1.2.3")));
    known = facts("u", "n", "2001:db8::1");
    len = identity_address(&known, out);
    assert_true(slice_eq(slice_of(out, len), SLICE("ip:2001:db8::1")));
    known = facts("u", "n", "");
    len = identity_address(&known, out);
    assert_true(slice_eq(slice_of(out, len), SLICE("ip:unix")));
}

static void all_sources_at_once(void **state)
{
    (void)state;
    struct identity identity;
    assert_true(identity_parse(&identity, SLICE("user, name, key:1, listener, ip/24, ip6/64"), why,
                               sizeof why));
    assert_int_equal(identity.count, 6);
    assert_true(identity_parse(&identity, SLICE("ip6/64,ip/24,ip,key:32,listener,name,user"), why,
                               sizeof why));
    assert_int_equal(identity.count, 7);
}

static void certificates_name_subjects(void **state)
{
    (void)state;
    struct facts known = facts("u", "n", "10.1.2.3");
    known.tls = SLICE("spiffe://acme/billing");
    assert_subject("tls, user, ip", known, "tls:spiffe://acme/billing");
    assert_subject("user, TLS", known, "user:u");
    known.tls = SLICE("My Client%");
    assert_subject("tls", known, "tls:My%20Client%25");
    known.tls = SLICE("");
    assert_subject("tls, ip", known, "ip:10.1.2.3");
}

static void wrong_sources_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "a source is missing"},
        {"user,,ip", "missing next to a comma"},
        {"user,", "missing next to a comma"},
        {"usr, ip", "did you mean user?"},
        {"nonsense", "write user, name, tls, ip"},
        {"tls/8", "only ip and ip6 take a length"},
        {"key, ip", "needs a number of segments"},
        {"key/2", "needs a number of segments"},
        {"key:0", "must be 1 to 32"},
        {"key:33", "must be 1 to 32"},
        {"key:", "must be 1 to 32"},
        {"key:x", "must be 1 to 32"},
        {"key:2, key:1", "\"key:1\" is never reached"},
        {"listener, listener", "never reached"},
        {"listener:6380", "only ip and ip6"},
        {"ip/0", "1 to 32"},
        {"ip/33", "1 to 32"},
        {"ip/", "1 to 32"},
        {"ip/x", "1 to 32"},
        {"ip6/129", "1 to 128"},
        {"ip6", "ip6/64"},
        {"user/3", "only ip and ip6"},
        {"ip:3", "only ip and ip6"},
        {"user, ip, user", "\"user\" is never reached"},
        {"ip, ip6/64", "\"ip6/64\" is never reached"},
        {"ip/24, ip/16", "\"ip/16\" is never reached"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct identity identity = {.count = 7};
        if (identity_parse(&identity, slice_str(bad[i].text), why, sizeof why))
            fail_msg("%s passed", bad[i].text);
        assert_int_equal(identity.count, 7);
        assert_says(bad[i].says);
    }
}

static void socket_addresses(void **state)
{
    (void)state;
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    struct sockaddr_in6 mapped = {.sin6_family = AF_INET6,
                                  .sin6_addr.s6_addr = {[10] = 0xff, 0xff, 127, 0, 0, 1}};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_addr.s6_addr = {[15] = 1}};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    struct ip a = ip_of((struct sockaddr *)&in), b = ip_of((struct sockaddr *)&mapped);
    struct ip c = ip_of((struct sockaddr *)&in6), localhost = ip("127.0.0.1"), loopback = ip("::1");
    assert_true(ip_eq(&a, &localhost));
    assert_true(ip_eq(&b, &localhost));
    assert_true(ip_eq(&c, &loopback));
    assert_false(ip_eq(&a, &c));
    assert_int_equal(ip_of((struct sockaddr *)&un).family, 0);
}

/* ---- match ---- */

static bool holds(const char *term, struct facts known)
{
    struct match match;
    if (!match_parse(&match, slice_str(term), why, sizeof why))
        fail_msg("%s: %s", term, why);
    bool held = match_holds(&match, &known);
    match_fini(&match);
    return held;
}

static void terms_hold(void **state)
{
    (void)state;
    struct facts known = facts("free-17", "app:1", "10.1.2.3");
    assert_true(holds("user:free-*", known));
    assert_true(holds("User: free-1[0-9]", known));
    assert_false(holds("user:Free-*", known));
    assert_false(holds("user:paid-*", known));
    assert_true(holds("name:app:?", known));
    assert_false(holds("name:ap", known));
    assert_true(holds("ip:10.1.0.0/16", known));
    assert_true(holds("ip:10.1.2.3", known));
    assert_true(holds("ip:0.0.0.0/0", known));
    assert_false(holds("ip:10.2.0.0/16", known));
    assert_false(holds("ip:::/0", known));
    assert_true(holds("ip:2001:db8::/32", facts("", "", "2001:db8:ffff::1")));
    assert_false(holds("ip:2001:db8::/32", facts("", "", "2001:db9::1")));
    assert_true(holds("ip:::1", facts("", "", "::1")));
    assert_true(holds("ip:::ffff:10.1.2.3", known));
}

static void terms_of_keys_and_listeners(void **state)
{
    (void)state;
    struct facts known = with_key(facts("", "", ""), "acme:\0x", 7);
    known.listener = SLICE("127.0.0.1:6380");
    assert_true(holds("listener:127.0.0.1:6380", known));
    assert_true(holds("Listener: *:6380", known));
    assert_false(holds("listener:unix:*", known));
    assert_true(holds("key:acme:*", known));
    assert_false(holds("key:acme:", known));
    assert_false(holds("key:acme:*", facts("acme:1", "acme:1", "")));
    assert_true(holds("key:*", with_key(facts("", "", ""), "", 0))); /* an empty key is a key */
    struct match match;
    assert_true(match_parse(&match, SLICE("key:x"), why, sizeof why));
    assert_true(match_is_of_key(&match));
    match_fini(&match);
    assert_true(match_parse(&match, SLICE("listener:x"), why, sizeof why));
    assert_false(match_is_of_key(&match));
    match_fini(&match);
}

static void terms_of_certificates(void **state)
{
    (void)state;
    struct facts known = facts("", "", "");
    known.tls = SLICE("spiffe://acme/billing");
    assert_true(holds("tls:spiffe://acme/*", known));
    assert_true(holds("TLS:*", known));
    assert_false(holds("tls:billing", known));
    assert_false(holds("tls:*", facts("spiffe://acme/billing", "spiffe://acme/billing", "")));
}

static void what_is_unknown_never_matches(void **state)
{
    (void)state;
    struct facts nobody = facts("", "", "");
    assert_false(holds("tls:*", nobody));
    assert_false(holds("user:*", nobody));
    assert_false(holds("name:*", nobody));
    assert_false(holds("listener:*", nobody));
    assert_false(holds("key:*", nobody));
    assert_false(holds("ip:0.0.0.0/0", nobody));
    assert_false(holds("ip:::/0", nobody));
}

static void wrong_terms_are_named(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "unknown term"},
        {"free-*", "write user:PATTERN"},
        {"usr:free-*", "did you mean user:"},
        {"acme:x", "write user:PATTERN"},
        {"key:", "has no pattern"},
        {"listener:", "has no pattern"},
        {"listner:x", "did you mean listener:"},
        {"user:", "has no pattern"},
        {"user:a user:b", "separated by commas"},
        {"user:[a", "never closed"},
        {"user:default", "[policy default]"},
        {"ip:", "is not an address"},
        {"ip:10.1", "is not an address"},
        {"ip:localhost", "is not an address"},
        {"ip:[::1]", "is not an address"},
        {"ip:10.1.2.3/16", "the network is ip:10.1.0.0/16"},
        {"ip:2001:db8::1/32", "the network is ip:2001:db8::/32"},
        {"ip:10.0.0.0/33", "0 to 32"},
        {"ip:10.0.0.0/", "0 to 32"},
        {"ip:10.0.0.0/8/8", "0 to 32"},
        {"ip:::/129", "0 to 128"},
        {"ip:::ffff:10.0.0.0/104", "0 to 32"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct match match;
        if (match_parse(&match, slice_str(bad[i].text), why, sizeof why))
            fail_msg("%s passed", bad[i].text);
        assert_says(bad[i].says);
        match_fini(&match);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_known_source_wins),
        cmocka_unit_test(networks_are_masked),
        cmocka_unit_test(unknown_by_all_sources_is_the_address),
        cmocka_unit_test(names_are_escaped),
        cmocka_unit_test(long_names_are_cut_and_told_apart),
        cmocka_unit_test(any_name_is_printable_and_fits),
        cmocka_unit_test(certificates_name_subjects),
        cmocka_unit_test(wrong_sources_are_named),
        cmocka_unit_test(socket_addresses),
        cmocka_unit_test(listeners_name_subjects),
        cmocka_unit_test(keys_name_subjects),
        cmocka_unit_test(whether_keys_are_needed),
        cmocka_unit_test(addresses_whatever_the_identity),
        cmocka_unit_test(sites),
        cmocka_unit_test(all_sources_at_once),
        cmocka_unit_test(terms_hold),
        cmocka_unit_test(terms_of_keys_and_listeners),
        cmocka_unit_test(terms_of_certificates),
        cmocka_unit_test(what_is_unknown_never_matches),
        cmocka_unit_test(wrong_terms_are_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
