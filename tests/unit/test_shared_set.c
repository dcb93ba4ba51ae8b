/*
 * Tests of sorted sets that share unchanged parts: their contents, the sharing, and the first
 * expiry.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/shared_set.h"

#define NAMES 5000

struct thing {
    struct shared_entry entry;
    unsigned value;
    char name[16];
};

static struct shared_entry *thing(const char *name, unsigned value, uint64_t until_ns)
{
    struct thing *thing = mem_zalloc(1, sizeof *thing);
    thing->value = value;
    snprintf(thing->name, sizeof thing->name, "%s", name);
    shared_entry_init(&thing->entry, slice_str(thing->name), until_ns);
    return &thing->entry;
}

static unsigned value_of(const struct shared_entry *entry)
{
    return ((const struct thing *)(const void *)entry)->value;
}

static void become(struct shared_set **set, struct shared_set *next)
{
    shared_set_put(*set);
    *set = next;
}

static void test_none(void **state)
{
    (void)state;
    assert_int_equal(shared_set_count(NULL), 0);
    assert_int_equal(shared_set_count_living(NULL, 0), 0);
    assert_int_equal(shared_set_next_end(NULL), 0);
    assert_null(shared_set_find(NULL, SLICE("a")));
    assert_null(shared_set_without(NULL, SLICE("a")));
    assert_null(shared_set_living(NULL, false, 0));
    assert_null(shared_set_get(NULL));
    shared_set_put(NULL);
}

static void test_a_change_leaves_the_set_before(void **state)
{
    (void)state;
    struct shared_set *first = shared_set_with(NULL, thing("ann", 1, 0));
    struct shared_set *second = shared_set_with(first, thing("ann", 2, 0));
    struct shared_set *third = shared_set_with(second, thing("bo", 3, 0));
    assert_int_equal(value_of(shared_set_find(first, SLICE("ann"))), 1);
    assert_int_equal(value_of(shared_set_find(second, SLICE("ann"))), 2);
    assert_int_equal(shared_set_count(second), 1);
    assert_int_equal(value_of(shared_set_at(third, 0)), 3); /* the shorter name */
    assert_ptr_equal(shared_set_at(third, 1), shared_set_at(second, 0));
    struct shared_set *same = shared_set_without(third, SLICE("nobody"));
    assert_int_equal(shared_set_count(same), 2);
    shared_set_put(same);
    shared_set_put(first);
    shared_set_put(second);
    assert_int_equal(shared_set_count(third), 2);
    shared_set_put(third);
}

static void test_ends(void **state)
{
    (void)state;
    struct shared_set *set = NULL;
    become(&set, shared_set_with(set, thing("a", 1, 50)));
    become(&set, shared_set_with(set, thing("b", 2, 0)));
    become(&set, shared_set_with(set, thing("c", 3, 90)));
    assert_int_equal(shared_set_next_end(set), 50);
    assert_int_equal(shared_set_count_living(set, 49), 3);
    assert_int_equal(shared_set_count_living(set, 50), 2);
    struct shared_set *timed = shared_set_living(set, true, 50);
    assert_int_equal(shared_set_count(timed), 1);
    assert_int_equal(value_of(shared_set_at(timed, 0)), 3);
    become(&set, shared_set_living(set, false, 50));
    assert_int_equal(shared_set_count(set), 2);
    assert_int_equal(shared_set_next_end(set), 90);
    become(&set, shared_set_without(set, SLICE("c")));
    assert_int_equal(shared_set_next_end(set), 0);
    become(&set, shared_set_without(set, SLICE("b")));
    assert_null(set);
    assert_null(shared_set_living(timed, false, 90));
    shared_set_put(timed);
}

static const char *name_at(unsigned i)
{
    static char name[16];
    snprintf(name, sizeof name, "n%u", i);
    return name;
}

static void check_all(const struct shared_set *set, const unsigned *values)
{
    size_t count = 0;
    for (unsigned i = 0; i < NAMES; i++) {
        const struct shared_entry *found = shared_set_find(set, slice_str(name_at(i)));
        assert_int_equal(found != NULL ? value_of(found) : 0, values[i]);
        count += values[i] > 0;
    }
    assert_int_equal(shared_set_count(set), count);
    for (size_t i = 1; i < count; i++) {
        struct slice a = shared_set_at(set, i - 1)->name, b = shared_set_at(set, i)->name;
        assert_true(a.len < b.len || (a.len == b.len && memcmp(a.at, b.at, a.len) < 0));
    }
}

/* Compared with an array: the set grows, changes and shrinks to nothing. */
static void test_many(void **state)
{
    (void)state;
    static unsigned values[NAMES];
    struct shared_set *set = NULL, *kept = NULL;
    static unsigned kept_values[NAMES];
    uint64_t random = 88172645463325252;
    for (unsigned step = 1; step <= 8 * NAMES; step++) {
        random ^= random << 13, random ^= random >> 7, random ^= random << 17;
        unsigned i = (unsigned)(random % NAMES);
        bool has_one_more = step <= 4 * NAMES ? random >> 60 > 3 : random >> 60 > 13;
        values[i] = has_one_more ? step : 0;
        become(&set, has_one_more ? shared_set_with(set, thing(name_at(i), step, 0))
                                  : shared_set_without(set, slice_str(name_at(i))));
        if (step == 2 * NAMES) {
            kept = shared_set_get(set);
            memcpy(kept_values, values, sizeof values);
        }
        if (step % NAMES == 0)
            check_all(set, values);
    }
    for (unsigned i = 0; i < NAMES; i++) {
        become(&set, shared_set_without(set, slice_str(name_at(i))));
        values[i] = 0;
    }
    assert_null(set);
    check_all(kept, kept_values);
    shared_set_put(kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_a_change_leaves_the_set_before),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
