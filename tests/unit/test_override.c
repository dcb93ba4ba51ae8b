/* Tests of the rates of single keys. */
#include "quota/named.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/clock.h"

static struct shared_set *set;

static struct override rates(const char *key, int64_t limit, uint64_t until_ns)
{
    return (struct override){
        .rule = {.kind = QUOTA_FIXED, .n_rates = 1, .rates = {{.limit = limit, .step = 1}}},
        .key = slice_str(key),
        .rates = SLICE("as it is written"),
        .until_ns = until_ns};
}

static void become(struct shared_set *next)
{
    shared_set_put(set);
    set = next;
}

static void give(const char *key, int64_t limit, uint64_t until_ns, uint64_t now_ns)
{
    char copy[32];
    snprintf(copy, sizeof copy, "%s", key); /* the set copies the key */
    struct override one = rates(copy, limit, until_ns);
    become(overrides_with(set, &one, now_ns));
}

static int64_t found(const char *key, uint64_t now_ns)
{
    const struct override *one = overrides_find(set, slice_str(key), now_ns);
    return one != NULL ? one->rule.rates[0].limit : 0;
}

static int clear(void **state)
{
    (void)state;
    become(NULL);
    return 0;
}

static void the_empty_set(void **state)
{
    (void)state;
    assert_int_equal(found("ann", 0), 0);
    assert_int_equal(shared_set_count(NULL), 0);
    assert_int_equal(shared_set_count_living(NULL, 0), 0);
    assert_null(overrides_without(NULL, SLICE("ann"), 0));
    assert_null(shared_set_living(NULL, true, 0));
    assert_null(shared_set_get(NULL));
    shared_set_put(NULL);
}

static void keys_are_exact(void **state)
{
    (void)state;
    give("ann", 1, 0, 0);
    give("", 2, 0, 0);
    give("Ann", 3, 0, 0);
    give("anna", 4, 0, 0);
    give("ann", 5, 0, 0);
    assert_int_equal(shared_set_count(set), 4);
    assert_int_equal(found("ann", 0), 5);
    assert_int_equal(found("", 0), 2);
    assert_int_equal(found("Ann", 0), 3);
    assert_int_equal(found("anna", 0), 4);
    assert_int_equal(found("an", 0), 0);
    assert_int_equal(found("bob", 0), 0);
    become(overrides_without(set, SLICE("Ann"), 0));
    assert_int_equal(found("Ann", 0), 0);
    assert_int_equal(shared_set_count(set), 3);
    assert_true(slice_eq(overrides_find(set, SLICE("ann"), 0)->rates, SLICE("as it is written")));
}

/* A rate ends on time for readers, and is not in the next set. */
static void they_end(void **state)
{
    (void)state;
    give("ann", 1, 100, 0);
    give("bob", 2, 0, 0);
    assert_int_equal(found("ann", 99), 1);
    assert_int_equal(found("ann", 100), 0);
    assert_int_equal(shared_set_count_living(set, 99), 2);
    assert_int_equal(shared_set_count_living(set, 100), 1);
    give("cyd", 3, 200, 100);
    assert_int_equal(shared_set_count(set), 2);
    become(shared_set_living(set, true, 150));
    assert_int_equal(shared_set_count(set), 1);
    assert_int_equal(found("cyd", 199), 3);
    assert_null(shared_set_living(set, true, 200));
}

/* A set does not change while it is held. */
static void a_set_does_not_change(void **state)
{
    (void)state;
    give("ann", 1, 0, 0);
    struct shared_set *before = shared_set_get(set);
    give("ann", 2, 0, 0);
    become(overrides_without(set, SLICE("ann"), 0));
    assert_null(set);
    assert_int_equal(overrides_find(before, SLICE("ann"), 0)->rule.rates[0].limit, 1);
    shared_set_put(before);
}

static void many(void **state)
{
    (void)state;
    char key[32];
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "%d", i * 7919 % 1000);
        give(key, 1 + i * 7919 % 1000, 0, 0);
    }
    assert_int_equal(shared_set_count(set), 1000);
    for (int i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "%d", i);
        assert_int_equal(found(key, 0), 1 + i);
    }
}

#define TEST(name) cmocka_unit_test_teardown(name, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_empty_set),         TEST(keys_are_exact), TEST(they_end),
        TEST(a_set_does_not_change), TEST(many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
