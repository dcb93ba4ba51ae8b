/*
 * Tests of several threads that add, each to its own struct top, while other threads read and clear
 * them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>

#include "dice.h"
#include "limit/figures/top.h"

#define S UINT64_C(1000000000)
#define WORKERS 4
#define TURNS 20000
#define SUBJECTS 300

static struct top *tops[WORKERS];
static _Atomic bool is_over;

static void *work(void *arg)
{
    struct top *top = arg;
    uint64_t seed = (uint64_t)(uintptr_t)arg;
    for (uint64_t i = 0; i < TURNS; i++) {
        char name[2] = {(char)dice_below(&seed, 2), (char)dice_below(&seed, SUBJECTS / 2)};
        uint64_t hash = (uint64_t)name[0] << 8 | (uint8_t)name[1];
        top_add(top, (enum top_by)(i % TOP_BY_COUNT), SLICE("p"), slice_of(name, 2), hash, 1 + i,
                i * S / 100);
    }
    return NULL;
}

static void *look(void *arg)
{
    struct top_entry entries[16];
    (void)arg;
    for (uint64_t i = 0; !is_over; i++) {
        size_t n =
            top_heaviest(tops, WORKERS, (enum top_by)(i % TOP_BY_COUNT), i * S / 100, entries, 16);
        for (size_t j = 0; j < n; j++)
            if (entries[j].subject_len != 2 || entries[j].policy[0] != 'p')
                return arg;
    }
    return NULL;
}

static void readers_see_whole_entries(void **state)
{
    (void)state;
    pthread_t threads[WORKERS], reader;
    for (size_t i = 0; i < WORKERS; i++)
        tops[i] = top_new();
    assert_int_equal(pthread_create(&reader, NULL, look, tops), 0);
    for (size_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, tops[i]), 0);
    for (size_t i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    is_over = true;
    void *bad;
    pthread_join(reader, &bad);
    assert_null(bad);
    for (size_t i = 0; i < WORKERS; i++)
        top_free(tops[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(readers_see_whole_entries)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
