/*
 * Tests of the maximum number of connections, and of the fair division of connections: a client
 * with few connections gets one when another has many.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "upstream/lane/room.h"

static void how_many_there_may_be(void **state)
{
    struct room room = {0};
    (void)state;
    assert_int_equal(room_most(&room), 8000);
    room.maxclients = 10000;
    assert_int_equal(room_most(&room), 8000);
    room.descriptors = 1024;
    assert_int_equal(room_most(&room), 819);
    room.asked = 7;
    assert_int_equal(room_most(&room), 7);
    for (int i = 0; i < 7; i++)
        assert_true(room_open(&room));
    assert_false(room_open(&room));
    assert_true(room_is_tight(&room));
    room_close(&room);
    assert_true(room_open(&room));
}

/* Takes connections until refused. Returns the number taken. */
static uint32_t grab(struct room *room, struct room_share share)
{
    uint32_t n = 0;
    while (n < 10000 && room_use(room, share))
        n++;
    return n;
}

static void nobody_has_all(void **state)
{
    struct room room = {.asked = 1000};
    struct room_share host = room_share_of(1, 2);
    (void)state;
    /* One address gets half of the connections at most. */
    assert_int_equal(grab(&room, host), 500);
    /* Each further address gets half of the rest, and the last one still gets some. */
    uint32_t last = 0;
    for (uint64_t who = 10; who < 16; who++)
        last = grab(&room, room_share_of(who, who + 100));
    assert_true(last > 0);
    for (int i = 0; i < 500; i++)
        room_give_back(&room, host);
    assert_true(grab(&room, host) > 200);
}

static void an_address_stands_for_all_its_subjects(void **state)
{
    struct room room = {.asked = 1000};
    uint32_t n = 0;
    (void)state;
    for (uint64_t subject = 1; subject < 2000; subject++)
        n += room_use(&room, room_share_of(subject, 7));
    assert_int_equal(n, 500);
    assert_true(room_use(&room, room_share_of(5000, 8)));
}

/* Each request is granted once. A withdrawn request is not granted. */
static void what_is_wanted(void **state)
{
    (void)state;
    struct room room = {0};
    atomic_store(&room.asked, 1);
    assert_false(room_is_full(&room));
    assert_true(room_open(&room));
    assert_true(room_is_full(&room));
    assert_false(room_is_wanted(&room));
    room_want(&room);
    room_want(&room);
    room_unwant(&room);
    assert_true(room_is_wanted(&room));
    assert_false(room_is_wanted(&room));
    room_unwant(&room); /* granted already */
    assert_false(room_is_wanted(&room));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(how_many_there_may_be),
        cmocka_unit_test(nobody_has_all),
        cmocka_unit_test(an_address_stands_for_all_its_subjects),
        cmocka_unit_test(what_is_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
