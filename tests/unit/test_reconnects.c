/* Tests of the permits of addresses: weir closed their connections for an outage. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/clock.h"
#include "limit/reconnects.h"

#define NOW (1000 * NS_PER_S)
#define WITHIN (10 * NS_PER_S)

static struct ip address(uint8_t last)
{
    return (struct ip){.family = 4, .bytes = {10, 0, 0, last}};
}

static void test_as_many_as_were_closed(void **state)
{
    struct reconnects *reconnects = reconnects_new((struct hash_key){1, 2});
    const struct ip one = address(1), other = address(2);
    (void)state;
    assert_false(reconnects_take(reconnects, &one, NOW, WITHIN, NOW));
    reconnects_note(reconnects, &one, NOW);
    reconnects_note(reconnects, &one, NOW);
    assert_false(reconnects_take(reconnects, &other, NOW, WITHIN, NOW));
    assert_true(reconnects_take(reconnects, &one, NOW, WITHIN, NOW));
    assert_true(reconnects_take(reconnects, &one, NOW + WITHIN, WITHIN, NOW));
    assert_false(reconnects_take(reconnects, &one, NOW + WITHIN, WITHIN, NOW));
    reconnects_free(reconnects);
}

static void test_for_a_time(void **state)
{
    struct reconnects *reconnects = reconnects_new((struct hash_key){1, 2});
    const struct ip one = address(1), other = address(2);
    (void)state;
    reconnects_note(reconnects, &one, NOW);
    assert_false(reconnects_take(reconnects, &one, NOW + WITHIN + 1, WITHIN, NOW));
    reconnects_note(reconnects, &other, NOW + WITHIN);
    assert_false(reconnects_take(reconnects, &one, NOW + WITHIN + 1, WITHIN, NOW));
    reconnects_free(reconnects);
}

/* A client closed because of its own connection to Redis gets no permit. */
static void test_only_for_an_outage(void **state)
{
    struct reconnects *reconnects = reconnects_new((struct hash_key){1, 2});
    const struct ip one = address(1), nameless = {0};
    (void)state;
    reconnects_note(reconnects, &one, NOW);
    assert_false(reconnects_take(reconnects, &one, NOW, WITHIN, 0));
    assert_false(reconnects_take(reconnects, &one, NOW, WITHIN, NOW - RECONNECTS_SLACK_NS - 1));
    assert_true(reconnects_take(reconnects, &one, NOW, WITHIN, NOW - RECONNECTS_SLACK_NS));
    reconnects_note(reconnects, &one, NOW);
    assert_true(reconnects_take(reconnects, &one, NOW + 5 * NS_PER_S, WITHIN, NOW + 4 * NS_PER_S));
    reconnects_note(reconnects, &nameless, NOW);
    assert_false(reconnects_take(reconnects, &nameless, NOW, WITHIN, NOW));
    reconnects_free(reconnects);
}

static void test_more_addresses_than_there_is_room_for(void **state)
{
    struct reconnects *reconnects = reconnects_new((struct hash_key){1, 2});
    uint32_t n = 0;
    (void)state;
    for (uint32_t i = 0; i < 100000; i++) {
        struct ip ip = {.family = 4,
                        .bytes = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}};
        reconnects_note(reconnects, &ip, NOW + i);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        struct ip ip = {.family = 4,
                        .bytes = {10, (uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}};
        n += reconnects_take(reconnects, &ip, NOW + i, WITHIN, NOW);
    }
    assert_in_range(n, 2000, 4096);
    reconnects_free(reconnects);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_many_as_were_closed),
        cmocka_unit_test(test_for_a_time),
        cmocka_unit_test(test_only_for_an_outage),
        cmocka_unit_test(test_more_addresses_than_there_is_room_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
