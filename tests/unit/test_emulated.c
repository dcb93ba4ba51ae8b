/* Tests of the emulated cluster of one master, and of replies that would reveal another one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "front/cluster/emulated.h"

#define COUNT_OF(a) (sizeof(a) / sizeof(a)[0])

static const struct emulated here = {.host = {"10.0.0.1", 8}, .port = 6380};

static void expect(struct build *out, const char *text)
{
    assert_false(out->is_broken);
    if (out->len != strlen(text) || memcmp(out->at, text, out->len) != 0)
        fail_msg("\"%.*s\" is not \"%s\"", (int)out->len, out->at, text);
    build_fini(out);
}

static void name(const struct emulated *emulated, char out[41])
{
    struct build built;
    build_init(&built, false);
    emulated_reply(EMULATED_MYID, emulated, &built);
    assert_int_equal(built.len, 5 + 40 + 2);
    memcpy(out, built.at + 5, 40);
    out[40] = '\0';
    build_fini(&built);
}

static void test_names(void **state)
{
    (void)state;
    char a[41], b[41], c[41];
    name(&here, a);
    name(&(struct emulated){.host = SLICE("10.0.0.1"), .port = 6380, .is_tls = true}, b);
    name(&(struct emulated){.host = SLICE("10.0.0.1"), .port = 6381}, c);
    assert_string_equal(a, b);
    assert_string_not_equal(a, c);
    assert_int_equal(strspn(a, "0123456789abcdef"), 40);
}

static void test_slots(void **state)
{
    (void)state;
    char id[41], text[256];
    struct build out;
    name(&here, id);
    build_init(&out, false);
    emulated_reply(EMULATED_SLOTS, &here, &out);
    snprintf(text, sizeof text,
             "*1\r\n*3\r\n:0\r\n:16383\r\n*4\r\n$8\r\n10.0.0.1\r\n:6380\r\n$40\r\n%s\r\n*0\r\n",
             id);
    expect(&out, text);
    struct emulated old = here;
    old.is_before_7 = true;
    build_init(&out, true);
    emulated_reply(EMULATED_SLOTS, &old, &out);
    snprintf(text, sizeof text,
             "*1\r\n*3\r\n:0\r\n:16383\r\n*3\r\n$8\r\n10.0.0.1\r\n:6380\r\n$40\r\n%s\r\n", id);
    expect(&out, text);
}

static void test_nodes(void **state)
{
    (void)state;
    char id[41], text[256];
    struct build out;
    name(&here, id);
    build_init(&out, true);
    emulated_reply(EMULATED_NODES, &here, &out);
    snprintf(text, sizeof text,
             "=105\r\ntxt:%s 10.0.0.1:6380@16380 myself,master - 0 0 1 connected 0-16383\n\r\n",
             id);
    expect(&out, text);
    struct emulated high = {.host = SLICE("::1"), .port = 65535};
    name(&high, id);
    build_init(&out, false);
    emulated_reply(EMULATED_NODES, &high, &out);
    snprintf(text, sizeof text,
             "$97\r\n%s ::1:65535@65535 myself,master - 0 0 1 connected 0-16383\n\r\n", id);
    expect(&out, text);
}

static const struct reply {
    const char *said, *told; /* told NULL: passed on unchanged */
} hellos[] =
    {
        {"*4\r\n$4\r\nmode\r\n$7\r\ncluster\r\n$4\r\nrole\r\n$6\r\nmaster\r\n",
         "*4\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n$4\r\nrole\r\n$6\r\nmaster\r\n"},
        {"%1\r\n$4\r\nmode\r\n$7\r\ncluster\r\n", "%1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n"},
        {"%1\r\n$4\r\nmode\r\n$10\r\nstandalone\r\n", NULL},
        {"-NOAUTH Authentication required.\r\n", NULL},
        {"", NULL},
},
  infos[] = {
      /* the wrong length */
      {"$50\r\n# Server\r\nredis_mode:cluster\r\nos:Linux\r\nx:1\r\ny:22\r\n", NULL},
      {"$20\r\nredis_mode:cluster\r\n\r\n",
       "$58\r\nredis_mode:standalone\r\n\r\n# weir\r\nweir_node:10.0.0.1:7000\r\n\r\n"},
      {"$21\r\nserver_mode:cluster\r\n\r\n", /* Valkey */
       "$59\r\nserver_mode:standalone\r\n\r\n# weir\r\nweir_node:10.0.0.1:7000\r\n\r\n"},
      {"=24\r\ntxt:redis_mode:cluster\r\n\r\n",
       "=62\r\ntxt:redis_mode:standalone\r\n\r\n# weir\r\nweir_node:10.0.0.1:7000\r\n\r\n"},
      {"$0\r\n\r\n", "$33\r\n# weir\r\nweir_node:10.0.0.1:7000\r\n\r\n"},
      {"$5\r\na:1\r\n\r\n", "$40\r\na:1\r\n\r\n# weir\r\nweir_node:10.0.0.1:7000\r\n\r\n"},
      {"$-1\r\n", NULL},
      {"$5\r\na:1", NULL},
      {"=2\r\nab\r\n", NULL},
      {"-NOPERM this user has no permissions\r\n", NULL},
      {":1\r\n", NULL},
      {"", NULL},
};

static void check(const struct reply *reply, bool is_hello)
{
    struct build out;
    build_init(&out, false);
    bool is_changed = is_hello ? emulated_hello(slice_str(reply->said), &out)
                               : emulated_info(slice_str(reply->said), "10.0.0.1:7000", &out);
    if (is_changed != (reply->told != NULL))
        fail_msg("\"%s\": %d", reply->said, is_changed);
    if (is_changed)
        expect(&out, reply->told);
    else
        build_fini(&out);
}

static void test_changed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(hellos); i++)
        check(&hellos[i], true);
    for (size_t i = 0; i < COUNT_OF(infos); i++)
        check(&infos[i], false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_slots),
        cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_changed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
