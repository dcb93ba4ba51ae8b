/* Tests of a list of addresses and networks, and of membership. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "limit/policy/ip.h"

static struct networks networks;

static bool add(const char *text)
{
    char why[256];
    return networks_add(&networks, slice_str(text), why, sizeof why);
}

static bool holds(const char *text)
{
    struct ip ip = {0};
    if (text[0] != '\0')
        assert_true(ip_parse(slice_str(text), &ip));
    return networks_hold(&networks, &ip);
}

static void test_who_is_among_them(void **state)
{
    (void)state;
    networks = (struct networks){0};
    assert_true(networks_are_none(&networks));
    assert_false(holds("10.0.0.1") || holds("::1") || holds(""));
    assert_true(add("10.0.0.0/8") && add("192.0.2.7") && add("2001:db8::/33"));
    assert_false(networks_are_none(&networks));
    assert_true(holds("10.0.0.1") && holds("10.255.255.255") && holds("192.0.2.7") &&
                holds("2001:db8:7fff::1"));
    assert_false(holds("11.0.0.0") || holds("192.0.2.6") || holds("2001:db8:8000::") ||
                 holds("a00::"));
    assert_false(holds(""));
    assert_true(holds("::ffff:10.1.2.3"));
    assert_true(add("unix"));
    assert_true(holds(""));
}

static void test_a_whole_family(void **state)
{
    (void)state;
    networks = (struct networks){0};
    assert_true(add("0.0.0.0/0"));
    assert_true(holds("1.2.3.4"));
    assert_false(holds("2001:db8::1"));
    assert_false(holds(""));
}

static void test_what_is_none(void **state)
{
    static const char *const texts[] = {"",           "x",  "10.0.0.0/",    "10.0.0.0/33",
                                        "10.0.0.1/8", "/8", "10.0.0.0/8/8", "unix/1"};
    (void)state;
    networks = (struct networks){0};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        assert_false(add(texts[i]));
    assert_true(networks_are_none(&networks));
}

static void test_there_is_an_end(void **state)
{
    char text[32];
    (void)state;
    networks = (struct networks){0};
    for (int i = 0; i < NETWORKS_MAX; i++) {
        snprintf(text, sizeof text, "10.0.0.%d", i);
        assert_true(add(text));
    }
    assert_false(add("10.0.1.0"));
    assert_true(add("unix"));
    assert_true(holds("10.0.0.63"));
    assert_false(holds("10.0.1.0"));
}

/* Addresses are printed as inet_ntop prints them. */
static void test_how_addresses_are_printed(void **state)
{
    (void)state;
    char text[IP_TEXT_MAX], wanted[IP_TEXT_MAX];
    for (unsigned byte = 0; byte < 256; byte++) {
        struct ip ip = {.family = 4,
                        .bytes = {(uint8_t)byte, (uint8_t)(255 - byte), 0, (uint8_t)byte}};
        snprintf(wanted, sizeof wanted, "%u.%u.0.%u", byte, 255 - byte, byte);
        assert_int_equal(ip_print(&ip, text), strlen(wanted));
        assert_string_equal(text, wanted);
    }
    struct ip ip;
    assert_true(ip_parse(SLICE("2001:db8::1"), &ip));
    assert_int_equal(ip_print(&ip, text), 11);
    assert_string_equal(text, "2001:db8::1");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_how_addresses_are_printed),
        cmocka_unit_test(test_who_is_among_them),
        cmocka_unit_test(test_a_whole_family),
        cmocka_unit_test(test_what_is_none),
        cmocka_unit_test(test_there_is_an_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
