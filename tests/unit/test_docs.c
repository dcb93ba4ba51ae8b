/*
 * Tests of weir's entries in COMMAND and COMMAND DOCS, against the shapes of redis-server 7.0.15
 * (GET, OBJECT FREQ and SET were compared). Tests of the notation of own.def, one row for each
 * element.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "quota/command_merge.h"
#include "resp/emit.h"
#include "resp/scan.h"

/* ---- replies as a person reads them ---- */

static long long head_of(const char **at)
{
    char *end;
    long long n = strtoll(*at + 1, &end, 10);
    *at = end + 2;
    return n;
}

/*
 * "[a b]" for arrays, "<a b>" for sets, "{a b}" for maps; bulks unchanged, the rest with its type.
 */
static void print_element(FILE *out, const char **at)
{
    static const char kinds[] = "*[]~<>%{}";
    char type = **at;
    const char *kind = strchr(kinds, type);
    if (kind == NULL && type != '$') {
        const char *end = strstr(*at, "\r\n");
        fprintf(out, "%.*s", (int)(end - *at), *at);
        *at = end + 2;
        return;
    }
    long long n = head_of(at);
    if (type == '$') {
        fprintf(out, "%.*s", (int)n, *at);
        *at += n + 2;
        return;
    }
    putc(kind[1], out);
    for (long long i = 0; i < n * (type == '%' ? 2 : 1); i++) {
        if (i > 0)
            putc(' ', out);
        print_element(out, at);
    }
    putc(kind[2], out);
}

/* Prints all that was built. The caller frees the text. */
static char *printed(struct build *build)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_false(build->is_broken);
    build_raw(build, slice_of("", 1)); /* the NUL, for strstr */
    const char *at = build->at;
    for (size_t i = 0; at < build->at + build->len - 1; i++) {
        if (i > 0)
            putc(' ', out);
        print_element(out, &at);
    }
    fclose(out);
    build_fini(build);
    return text;
}

static void assert_built(struct build *build, const char *expected)
{
    char *text = printed(build);
    assert_string_equal(text, expected);
    free(text);
}

/* ---- COMMAND INFO ---- */

static const struct own keyless = {
    .name = "limit|status", .arity = -2, .arguments = "", .summary = "S"};
static const struct own keyed = {.name = "cl.throttle",
                                 .arity = -5,
                                 .first_key = 1,
                                 .last_key = 1,
                                 .key_step = 1,
                                 .arguments = "",
                                 .summary = "S"};
static const struct own operators = {
    .name = "limit|set", .arity = -5, .arguments = "", .summary = "S", .is_operators = true};

static void assert_info(const struct own *own, bool is_resp3, const char *expected)
{
    struct build build;
    build_init(&build, is_resp3);
    docs_info(&build, own);
    assert_built(&build, expected);
}

static void an_entry_has_ten_elements(void **state)
{
    (void)state;
    struct own all = keyed;
    all.last_key = -1;
    assert_info(
        &keyless, false,
        "[limit|status :-2 [+noscript +no_multi +loading +stale] :0 :0 :0 [+@limit] [] [] []]");
    assert_info(
        &keyless, true,
        "[limit|status :-2 <+noscript +no_multi +loading +stale> :0 :0 :0 <+@limit> <> <> []]");
    assert_info(
        &operators, true,
        "[limit|set :-5 <+noscript +no_multi +loading +stale +admin> :0 :0 :0 <+@limit> <> <> []]");
    assert_info(&keyed, true,
                "[cl.throttle :-5 <+noscript +no_multi +write> :1 :1 :1 <+@limit> <> <> []]");
    assert_info(&all, false,
                "[cl.throttle :-5 [+noscript +no_multi +write] :1 :-1 :1 [+@limit] [] [] []]");
}

static void a_container_has_subcommands(void **state)
{
    (void)state;
    struct build build;
    build_init(&build, true);
    const struct own *limit = own_find(SLICE("limit"));
    assert_true(docs_is_top(limit));
    assert_false(docs_is_top(own_find(SLICE("limit|set"))));
    docs_info(&build, limit);
    char *text = printed(&build);
    static const char begin[] =
        "[limit :-2 <+noscript +no_multi +loading +stale> :0 :0 :0 <+@limit> <> <> "
        "[[limit|help :2 <";
    assert_memory_equal(text, begin, sizeof begin - 1);
    free(text);
}

/* ---- COMMAND DOCS ---- */

static void assert_arguments(const char *arguments, const char *expected)
{
    struct own own = keyless;
    own.arguments = arguments;
    struct build build;
    build_init(&build, true);
    docs_entry(&build, &own);
    char *text = printed(&build);
    static const char begin[] = "limit|status {summary S since 0.1.0 group limit";
    assert_memory_equal(text, begin, sizeof begin - 1);
    assert_string_equal(text + sizeof begin - 1, expected);
    free(text);
}

static void arguments_are_as_redis_writes_them(void **state)
{
    (void)state;
    static const struct {
        const char *arguments, *expected;
    } rows[] = {
        {"", "}"},
        {"key:key", " arguments [{name key type key}]}"},
        {"a:string b:double", " arguments [{name a type string} {name b type double}]}"},
        {"[n:integer]", " arguments [{name n type integer flags <+optional>}]}"},
        {"e:string ...", " arguments [{name e type string flags <+multiple>}]}"},
        {"[a:string ...]", " arguments [{name a type string flags <+optional +multiple>}]}"},
        {"[a:string] ...", " arguments [{name a type string flags <+optional +multiple>}]}"},
        {"[PEEK]", " arguments [{name PEEK type pure-token token PEEK flags <+optional>}]}"},
        {"PEEK APPROX",
         " arguments [{name PEEK type pure-token token PEEK} {name APPROX type pure-token token APPROX}]}"},
        {"[FOR subject:string]",
         " arguments [{name subject type string token FOR flags <+optional>}]}"},
        {"[BY A|B]", " arguments [{name A|B type string token BY flags <+optional>}]}"},
        {"[ON|OFF]", " arguments [{name ON|OFF type string flags <+optional>}]}"},
        {"A|B k:key", " arguments [{name A|B type string} {name k type key}]}"},
        {"r:string [BURST n:integer] [r:string [BURST n:integer] ...]",
         " arguments [{name r type string} {name n type integer token BURST flags <+optional>} "
         "{name r [BURST n] type string flags <+optional +multiple>}]}"},
        {"[GET a:string b:string]", " arguments [{name GET a b type string flags <+optional>}]}"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        assert_arguments(rows[i].arguments, rows[i].expected);
}

static void maps_are_flat_in_resp2(void **state)
{
    (void)state;
    struct own own = keyless;
    own.arguments = "[n:integer]";
    struct build build;
    build_init(&build, false);
    docs_entry(&build, &own);
    assert_built(&build, "limit|status [summary S since 0.1.0 group limit arguments "
                         "[[name n type integer flags [+optional]]]]");
}

/* Every row in both versions gives two whole frames, and only types that redis-cli knows. */
static void every_row_is_well_formed(void **state)
{
    (void)state;
    for (size_t i = 0; i < own_count() * 2; i++) {
        struct build build;
        assert_true(own_row(i / 2)->first_key == 0 || own_row(i / 2)->key_step > 0);
        build_init(&build, i % 2 == 1);
        docs_entry(&build, own_row(i / 2));
        docs_info(&build, own_row(i / 2));
        size_t at = 0;
        for (int frames = 0; frames < 3; frames++) {
            struct reply_scan scan = {0};
            size_t used;
            assert_int_equal(reply_scan(&scan, build.at + at, build.len - at, &used), SCAN_FRAME);
            at += used;
        }
        assert_int_equal(at, build.len);
        char *text = printed(&build);
        for (const char *type = text; (type = strstr(type, "{name ")) != NULL; type++) {
            char kind[65];
            const char *name_end = strstr(type, " type ");
            assert_non_null(name_end);
            /* A name contains no type. */
            assert_null(memchr(type, ':', (size_t)(name_end - type)));
            assert_int_equal(sscanf(name_end, " type %64[^ }]", kind), 1);
            static const char known[] = " key string integer double pure-token ";
            const char *found = strstr(known, kind);
            assert_non_null(found);
            assert_int_equal(found[-1], ' ');
            assert_int_equal(found[strlen(kind)], ' ');
        }
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_has_ten_elements),
        cmocka_unit_test(a_container_has_subcommands),
        cmocka_unit_test(arguments_are_as_redis_writes_them),
        cmocka_unit_test(maps_are_flat_in_resp2),
        cmocka_unit_test(every_row_is_well_formed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
