/* Tests of cluster slots against CLUSTER KEYSLOT of Redis 7.0.15. No byte beyond a key is read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "guard.h"
#include "limit/command/slot.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const struct {
    struct slice key;
    uint16_t slot;
} examples[] = {
    {SLICE(""), 0},
    {SLICE("a"), 15495},
    {SLICE("foo"), 12182},
    {SLICE("bar"), 5061},
    {SLICE("123456789"), 12739}, /* 0x31c3, the check value of CRC16 XMODEM */
    {SLICE("user:1000"), 1649},
    {SLICE("{user1000}.following"), 3443},
    {SLICE("{user1000}.followers"), 3443},
    {SLICE("user1000"), 3443},
    {SLICE("foo{}{bar}"), 8363},
    {SLICE("foo{{bar}}zap"), 4015},
    {SLICE("{bar"), 4015},
    {SLICE("foo{bar}{zap}"), 5061},
    {SLICE("foo{bar"), 15278},
    {SLICE("foo}bar{baz}"), 4813},
    {SLICE("baz"), 4813},
    {SLICE("{}"), 15257},
    {SLICE("{}foo"), 9500},
    {SLICE("{"), 4092},
    {SLICE("}"), 12090},
    {SLICE("}{"), 12793},
    {SLICE("{}}"), 14790},
    {SLICE("{{}"), 4092},
    {SLICE("{{}}"), 4092},
    {SLICE("{}{a}"), 13650},
    {SLICE("{a}"), 15495},
    {SLICE("x{a}y{b}z"), 15495},
    {SLICE("\0"), 0},
    {SLICE("\0\0"), 0},
    {SLICE("\xff"), 7920},
    {SLICE("\xff\xfe\0{\0}x"), 0},
    {SLICE("a b"), 9817},
    {SLICE("\r\n"), 5910},
    {SLICE("limit:{s17}:free/write:user:free-9"), 12616},
    {SLICE("s17"), 12616},
};

static void slots_are_those_of_redis(void **state)
{
    (void)state;
    struct guard guard = guard_new(64);
    for (size_t i = 0; i < COUNT_OF(examples); i++) {
        struct slice key = slice_of(guard_place(&guard, examples[i].key.at, examples[i].key.len),
                                    examples[i].key.len);
        if (slot_of(key) != examples[i].slot)
            fail_msg("%.*s: slot %u", (int)key.len, key.at, slot_of(key));
    }
    guard_free(&guard);
}

static void a_long_key(void **state)
{
    (void)state;
    char key[300];
    memset(key, 'k', sizeof key);
    assert_int_equal(slot_of(slice_of(key, sizeof key)), 16002);
    assert_int_equal(slot_of(slice_of(NULL, 0)), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(slots_are_those_of_redis),
        cmocka_unit_test(a_long_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
