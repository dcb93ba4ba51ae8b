/* Tests of the index of matches: the index finds the policy that a linear search finds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dice.h"
#include "limit/policy/policy.h"
#include "policy_kit.h"

static struct command_table *table;
static struct policies *policies;

static int set_up(void **state)
{
    (void)state;
    table = command_table_builtin();
    policies = policies_new(classes_new());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    policies_put(policies);
    command_table_put(table);
    return 0;
}

/* The linear search for the policy. */
static const struct policy *scanned(const struct facts *facts)
{
    for (size_t i = 0; i < policies_count(policies); i++) {
        const struct policy *policy = policies_at(policies, i);
        for (size_t j = 0; j < policy->n_matches; j++)
            if (match_holds(&policy->matches[j], facts))
                return policy;
    }
    return policies_find(policies, SLICE("default"));
}

static const char *name_of(const struct policy *policy)
{
    return policy != NULL ? policy->name : "none";
}

static unsigned below(uint64_t *seed, size_t n)
{
    return (unsigned)dice_below(seed, n);
}

/* ---- random policies and clients, with names of few letters, so that many clients match ---- */

static const char *const facts_named[] = {"user", "name", "tls", "listener", "key"};

static size_t random_text(uint64_t *seed, char *out, const char *letters)
{
    size_t len = below(seed, 6);
    for (size_t i = 0; i < len; i++)
        out[i] = letters[below(seed, strlen(letters))];
    out[len] = '\0';
    return len;
}

/* A random address of either family, with few different bits. */
static void random_ip(uint64_t *seed, struct ip *ip)
{
    *ip = (struct ip){.family = below(seed, 2) ? 4 : 6};
    ip->bytes[0] = (uint8_t)(below(seed, 2) ? 10 : 32);
    ip->bytes[1] = (uint8_t)below(seed, 4);
    ip->bytes[below(seed, ip->family == 4 ? 4 : 16)] |= (uint8_t)below(seed, 256);
}

static void random_network(uint64_t *seed, char *out, size_t room)
{
    static const unsigned lengths[] = {0, 1, 7, 8, 9, 15, 16, 23, 24, 31, 32, 64, 100, 127, 128};
    char text[IP_TEXT_MAX];
    struct ip ip;
    random_ip(seed, &ip);
    unsigned prefix = lengths[below(seed, sizeof lengths / sizeof lengths[0])];
    prefix = prefix < ip_bits(&ip) ? prefix : ip_bits(&ip);
    ip = ip_network(&ip, prefix);
    ip_print(&ip, text);
    snprintf(out, room, "ip:%s/%u", text, prefix);
}

static void random_term(uint64_t *seed, char *out, size_t room)
{
    char text[16];
    char why[256];
    struct match match;
    do {
        const char *letters = below(seed, 4) == 0 ? "ab*?\\[]" : "ab";
        size_t len = random_text(seed, text, letters);
        if (below(seed, 2))
            snprintf(text + len, sizeof text - len, "*");
        snprintf(out, room, "%s:%s", facts_named[below(seed, 5)], text);
        if (below(seed, 4) == 0)
            random_network(seed, out, room);
        if (match_parse(&match, slice_str(out), why, sizeof why)) {
            match_fini(&match);
            return;
        }
        match_fini(&match);
    } while (true);
}

static void random_policies(uint64_t *seed)
{
    char name[16];
    char term[80];
    unsigned n = 1 + below(seed, 40);
    for (unsigned i = 0; i < n; i++) {
        bool is_default = below(seed, 20) == 0;
        snprintf(name, sizeof name, is_default ? "default" : "p%u", i);
        struct policy *policy = kit_policy(policies, name);
        for (unsigned terms = is_default ? 0 : below(seed, 4); terms > 0; terms--) {
            random_term(seed, term, sizeof term);
            kit_match(policy, term);
        }
    }
    policies_bind(policies, table);
}

static struct slice random_fact(uint64_t *seed, char *text)
{
    size_t len = random_text(seed, text, below(seed, 4) == 0 ? "ab*?\\[]" : "ab");
    if (len > 0 && below(seed, 20) == 0)
        text[below(seed, len)] = '\0'; /* keys may contain a NUL */
    return below(seed, 3) ? slice_of(text, len) : slice_of(NULL, 0);
}

static void finds_what_a_plain_look_finds(void **state)
{
    char texts[5][16];
    uint64_t seed = 19;
    (void)state;
    for (uint64_t round = 0; round < dice_rounds(400); round++) {
        policies_put(policies);
        policies = policies_new(classes_new());
        random_policies(&seed);
        for (unsigned client = 0; client < 100; client++) {
            struct facts facts = {.user = random_fact(&seed, texts[0]),
                                  .name = random_fact(&seed, texts[1]),
                                  .tls = random_fact(&seed, texts[2]),
                                  .listener = random_fact(&seed, texts[3]),
                                  .key = random_fact(&seed, texts[4])};
            if (below(&seed, 3))
                random_ip(&seed, &facts.ip);
            assert_string_equal(name_of(policies_match(policies, &facts)),
                                name_of(scanned(&facts)));
        }
    }
}

/* ---- patterns, which are tried one by one ---- */

static void only_patterns_are_tried_one_by_one(void **state)
{
    (void)state;
    kit_match(kit_policy(policies, "a"),
              "user:ann, user:free-*, name:\\*, ip:10.0.0.0/8, key:*, tls:free-**");
    policies_bind(policies, table);
    assert_int_equal(policies_patterns(policies), 0);
    kit_match(kit_policy(policies, "b"), "user:a?n, user:*-free, user:[ab]*, user:a*b*");
    policies_bind(policies, table);
    assert_int_equal(policies_patterns(policies), 4);
}

static void the_first_policy_counts_not_the_longest_prefix(void **state)
{
    struct facts facts = {.user = SLICE("free-17")};
    (void)state;
    kit_match(kit_policy(policies, "wide"), "user:f*");
    kit_match(kit_policy(policies, "narrow"), "user:free-*, user:free-17");
    kit_match(kit_policy(policies, "pattern"), "user:*7");
    policies_bind(policies, table);
    assert_string_equal(policies_match(policies, &facts)->name, "wide");
    facts.user = SLICE("paid-7");
    assert_string_equal(policies_match(policies, &facts)->name, "pattern");
}

static void a_copy_for_another_table_finds_the_same(void **state)
{
    struct facts facts = {.user = SLICE("ann")};
    (void)state;
    kit_match(kit_policy(policies, "a"), "user:ann");
    kit_policy(policies, "default");
    policies_bind(policies, table);
    struct policies *copy = policies_rebind(policies, table);
    policies_put(policies);
    policies = copy;
    assert_string_equal(policies_match(policies, &facts)->name, "a");
    facts.user = SLICE("bob");
    assert_string_equal(policies_match(policies, &facts)->name, "default");
    assert_string_equal(policies_find(policies, SLICE("DEFAULT"))->name, "default");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(finds_what_a_plain_look_finds, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_patterns_are_tried_one_by_one, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_policy_counts_not_the_longest_prefix, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_copy_for_another_table_finds_the_same, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
