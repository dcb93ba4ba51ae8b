/* Tests of a client's subscribed names: kinds apart, moved, without a tap, and none left behind. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "front/session/channels.h"

static int taps[2];

static void test_kinds_are_apart(void **state)
{
    struct channels channels = {0};
    (void)state;
    channels_init(&channels);
    assert_true(channels_add(&channels, CHANNEL_SHARD, SLICE("a"), &taps[0]));
    assert_true(channels_add(&channels, CHANNEL_SHARD, SLICE("a"), &taps[1]));
    assert_true(channels_add(&channels, CHANNEL_PATTERN, SLICE("a"), NULL));
    assert_int_equal(channels.n, 1);
    assert_int_equal(channels.n_wide, 1);
    assert_int_equal(channels.n_orphans, 0);
    assert_ptr_equal(channels_find(&channels, CHANNEL_SHARD, SLICE("a"))->tap, &taps[1]);
    assert_null(channels_find(&channels, CHANNEL_EXACT, SLICE("a")));
    channels_drop_all(&channels, CHANNEL_SHARD);
    assert_int_equal(channels.n, 0);
    assert_non_null(channels_find(&channels, CHANNEL_PATTERN, SLICE("a")));
    channels_fini(&channels);
    assert_int_equal(channels.bytes, 0);
}

static void test_orphans(void **state)
{
    struct channels channels = {0};
    char name[16];
    uint32_t n = 0;
    (void)state;
    channels_init(&channels);
    for (int i = 0; i < 1000; i++)
        assert_true(channels_add(&channels, CHANNEL_SHARD,
                                 slice_of(name, (size_t)sprintf(name, "c%d", i)), &taps[i % 2]));
    channels_orphan(&channels, &taps[0]);
    assert_int_equal(channels.n, 1000);
    assert_int_equal(channels.n_orphans, 500);
    struct channel *at = NULL;
    while ((at = channels_next(&channels, CHANNEL_SHARD, at)) != NULL) {
        n++;
        if (at->tap == NULL)
            channels_move(&channels, at, &taps[1]);
    }
    assert_int_equal(n, 1000);
    assert_int_equal(channels.n_orphans, 0);
    channels_orphan(&channels, &taps[1]);
    channels_drop(&channels, channels_find(&channels, CHANNEL_SHARD, SLICE("c7")));
    assert_int_equal(channels.n_orphans, 999);
    channels_fini(&channels);
    assert_int_equal(channels.n_orphans + channels.n, 0);
}

static void test_there_is_a_limit(void **state)
{
    struct channels channels = {0};
    char *name = calloc(1, 65536);
    uint32_t n = 0;
    (void)state;
    channels_init(&channels);
    do
        *(uint32_t *)(void *)name = ++n;
    while (channels_add(&channels, CHANNEL_SHARD, slice_of(name, 65536), &taps[0]));
    assert_in_range(n, CHANNELS_BYTES_MAX / 65536 - 1, CHANNELS_BYTES_MAX / 65536 + 1);
    assert_true(channels.bytes <= CHANNELS_BYTES_MAX);
    channels_fini(&channels);
    free(name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_are_apart),
        cmocka_unit_test(test_orphans),
        cmocka_unit_test(test_there_is_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
