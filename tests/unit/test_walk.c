/* Tests of walks over a list of clients: each step is bounded, and each client is looked at. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/list.h"

#define ITEMS 1000

struct item {
    struct list in_list;
    unsigned looks;
};

static struct item items[ITEMS], late;
static struct list list;
static struct walk walk;
static unsigned n_looks;
static void (*meanwhile)(struct item *item);

static int set_up(void **state)
{
    (void)state;
    list_init(&list);
    late = (struct item){.looks = 0};
    for (size_t i = 0; i < ITEMS; i++) {
        items[i] = (struct item){.looks = 0};
        list_push(&list, &items[i].in_list);
    }
    walk = (struct walk){NULL};
    meanwhile = NULL;
    return 0;
}

static void look(struct list *at, void *arg)
{
    struct item *item = container_of(at, struct item, in_list);
    (void)arg;
    n_looks++;
    item->looks++;
    if (meanwhile != NULL)
        meanwhile(item);
}

/* The number of steps of a walk. Each step looks at WALK_STEP clients at most. */
static unsigned go(void)
{
    unsigned steps = 0;
    bool is_over = false;
    walk_begin(&walk, &list);
    while (!is_over) {
        assert_true(walk_is_on(&walk));
        n_looks = 0;
        is_over = walk_step(&walk, &list, look, NULL);
        assert_true(n_looks <= WALK_STEP);
        steps++;
    }
    assert_false(walk_is_on(&walk));
    return steps;
}

static void a_step_is_bounded(void **state)
{
    (void)state;
    assert_int_equal(go(), (ITEMS + WALK_STEP - 1) / WALK_STEP);
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(items[i].looks, 1);
}

static void take_out(struct item *item)
{
    walk_skip(&walk, &item->in_list);
    list_take(&item->in_list);
}

/* Each item takes itself out of the list, and every second one also the next. */
static void take_some_out(struct item *item)
{
    size_t i = (size_t)(item - items);
    take_out(item);
    if (i % 4 == 0)
        take_out(&items[i + 1]);
}

static void items_may_go_meanwhile(void **state)
{
    (void)state;
    meanwhile = take_some_out;
    go();
    assert_true(list_is_empty(&list));
    for (size_t i = 0; i < ITEMS; i++)
        assert_int_equal(items[i].looks, i % 4 != 1);
}

static void let_one_in(struct item *item)
{
    if (item == &items[0])
        list_push(&list, &late.in_list);
}

static void who_comes_late_is_looked_at(void **state)
{
    (void)state;
    meanwhile = let_one_in;
    go();
    assert_int_equal(late.looks, 1);
}

static void an_empty_list_is_over_at_once(void **state)
{
    (void)state;
    list_init(&list);
    assert_int_equal(go(), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_step_is_bounded, set_up),
        cmocka_unit_test_setup(items_may_go_meanwhile, set_up),
        cmocka_unit_test_setup(who_comes_late_is_looked_at, set_up),
        cmocka_unit_test_setup(an_empty_list_is_over_at_once, set_up),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
