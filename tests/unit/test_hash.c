/* Tests SipHash-1-3 against CPython's hash() of bytes under PYTHONHASHSEED=0. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/hash.h"

static void equals_cpython(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t hash;
    } cases[] = {
        {"a", UINT64_C(0x407448d2b89b1813)},
        {"weir", UINT64_C(0xafd841259e24ac48)},
        {"12345678", UINT64_C(0x3489982430560a87)},
        {"user:free-17", UINT64_C(0xe64d53d25f461800)},
        {"0123456789abcdef", UINT64_C(0x1d42b30f7e060c24)},
    };
    struct hash_key zero = {0, 0};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_int_equal(hash_bytes(zero, slice_str(cases[i].text)), cases[i].hash);
}

static void the_key_matters(void **state)
{
    (void)state;
    struct slice text = SLICE("user:free-17");
    uint64_t hash = hash_bytes((struct hash_key){1, 2}, text);
    assert_int_equal(hash_bytes((struct hash_key){1, 2}, text), hash);
    assert_int_not_equal(hash_bytes((struct hash_key){2, 2}, text), hash);
    assert_int_not_equal(hash_bytes((struct hash_key){1, 3}, text), hash);
}

static void nothing_is_a_text_too(void **state)
{
    (void)state;
    struct hash_key key = {1, 2};
    assert_int_equal(hash_bytes(key, slice_of(NULL, 0)), hash_bytes(key, SLICE("")));
    assert_int_not_equal(hash_bytes(key, SLICE("")), hash_bytes(key, SLICE("\0")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equals_cpython),
        cmocka_unit_test(the_key_matters),
        cmocka_unit_test(nothing_is_a_text_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
