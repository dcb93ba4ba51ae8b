/*
 * Entries of COMMAND and COMMAND DOCS, against the shapes that redis-server 7.0.15 gives its own commands (GET, OBJECT
 * FREQ and SET were looked at); the notation of own.def, one row for each thing it can say.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>

#include "quota/docs.h"
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

/* "[a b]" for arrays, "<a b>" for sets, "{a b}" for maps; bulks as they are, the rest with its type. */
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

/* All that was built; the caller frees it. */
static char *printed(struct build *build)
{
    char *text;
    size_t len;
    FILE *out = open_memstream(&text, &len);
    assert_false(build->is_broken);
    build_raw(build, slice_of("", 1)); /* for strstr */
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

static const struct own keyless = {.name = "limit|status", .arity = -2, .arguments = "", .summary = "S"};
static const struct own keyed = {
    .name = "cl.throttle", .arity = -5, .first_key = 1, .last_key = 1, .key_step = 1, .arguments = "", .summary = "S"};
static const struct own operators = {
    .name = "limit|set", .arity = -5, .arguments = "", .summary = "S", .is_operators = true};

static void assert_info(const struct own *own, bool is_resp3, int64_t elements, const char *expected)
{
    struct build build;
    build_init(&build, is_resp3);
    docs_info(&build, own, elements);
    assert_built(&build, expected);
}

static void an_entry_has_ten_elements(void **state)
{
    (void)state;
    assert_info(&keyless, false, 10,
                "[limit|status :-2 [+noscript +loading +stale +no_multi] :0 :0 :0 [+@limit] [] [] []]");
    assert_info(&keyless, true, 10,
                "[limit|status :-2 <+noscript +loading +stale +no_multi> :0 :0 :0 <+@limit> <> <> <>]");
    assert_info(&operators, true, 10,
                "[limit|set :-5 <+admin +noscript +loading +stale +no_multi> :0 :0 :0 <+@limit> <> <> <>]");
    assert_info(&keyless, false, 11,
                "[limit|status :-2 [+noscript +loading +stale +no_multi] :0 :0 :0 [+@limit] [] [] []]");
}

static void an_old_entry_has_seven(void **state)
{
    (void)state;
    assert_info(&keyless, false, 7, "[limit|status :-2 [+noscript +loading +stale +no_multi] :0 :0 :0 [+@limit]]");
}

static void keys_have_specs(void **state)
{
    (void)state;
    assert_info(&keyed, true, 10,
                "[cl.throttle :-5 <+write +noscript +no_multi> :1 :1 :1 <+@limit> <> <{flags <+RW +access +update> "
                "begin_search {type index spec {index :1}} "
                "find_keys {type range spec {lastkey :0 keystep :1 limit :0}}}> <>]");
    struct own all = keyed;
    all.last_key = -1;
    assert_info(&all, false, 10,
                "[cl.throttle :-5 [+write +noscript +no_multi] :1 :-1 :1 [+@limit] [] [[flags [+RW +access +update] "
                "begin_search [type index spec [index :1]] "
                "find_keys [type range spec [lastkey :-1 keystep :1 limit :0]]]] []]");
}

static void a_container_has_subcommands(void **state)
{
    (void)state;
    struct build build;
    build_init(&build, true);
    const struct own *limit = own_find(SLICE("limit"));
    assert_true(docs_is_container(limit));
    assert_true(docs_is_top(limit));
    assert_false(docs_is_container(own_find(SLICE("limit|set"))));
    assert_false(docs_is_top(own_find(SLICE("limit|set"))));
    docs_info(&build, limit, 10);
    char *text = printed(&build);
    static const char begin[] = "[limit :-2 <> :0 :0 :0 <+@limit> <> <> [[limit|help :2 <";
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
        {"key:key", " arguments [{name key type key key_spec_index :0}]}"},
        {"a:string b:double", " arguments [{name a type string} {name b type double}]}"},
        {"[n:integer]", " arguments [{name n type integer flags <+optional>}]}"},
        {"e:string ...", " arguments [{name e type string flags <+multiple>}]}"},
        {"[a:string ...]", " arguments [{name a type string flags <+optional +multiple>}]}"},
        {"[PEEK]", " arguments [{name peek type pure-token token PEEK flags <+optional>}]}"},
        {"PEEK APPROX",
         " arguments [{name peek type pure-token token PEEK} {name approx type pure-token token APPROX}]}"},
        {"[FOR subject:string]", " arguments [{name subject type string token FOR flags <+optional>}]}"},
        {"[BY A|B]", " arguments [{name by type oneof token BY flags <+optional> arguments "
                     "[{name a type pure-token token A} {name b type pure-token token B}]}]}"},
        {"[ON|OFF]", " arguments [{name on-off type oneof flags <+optional> arguments "
                     "[{name on type pure-token token ON} {name off type pure-token token OFF}]}]}"},
        {"id:integer|ALL", " arguments [{name id type oneof arguments "
                           "[{name id type integer} {name all type pure-token token ALL}]}]}"},
        {"r:string [BURST n:integer] [r:string [BURST n:integer] ...]",
         " arguments [{name r type string} {name n type integer token BURST flags <+optional>} "
         "{name r type block flags <+optional +multiple> arguments "
         "[{name r type string} {name n type integer token BURST flags <+optional>}]}]}"},
        {"[GET a:string b:string]", " arguments [{name get type block flags <+optional> arguments "
                                    "[{name a type string token GET} {name b type string}]}]}"},
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

/* Every row in both versions: two whole frames, and no type that redis-cli does not know. */
static void every_row_is_well_formed(void **state)
{
    (void)state;
    for (size_t i = 0; i < own_count() * 2; i++) {
        struct build build;
        assert_true(own_row(i / 2)->first_key == 0 || own_row(i / 2)->key_step > 0);
        build_init(&build, i % 2 == 1);
        docs_entry(&build, own_row(i / 2));
        docs_info(&build, own_row(i / 2), 10);
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
            char name[65];
            char kind[65];
            assert_int_equal(sscanf(type, "{name %64s type %64[^ }]", name, kind), 2);
            static const char known[] = " key string integer double pure-token oneof block ";
            const char *found = strstr(known, kind);
            assert_non_null(found);
            assert_int_equal(found[-1], ' ');
            assert_int_equal(found[strlen(kind)], ' ');
        }
        free(text);
    }
}

static void top_level_names_have_no_bar(void **state)
{
    (void)state;
    int64_t count = 0;
    for (size_t i = 0; i < own_count(); i++)
        count += strchr(own_row(i)->name, '|') == NULL;
    assert_int_equal(docs_top_count(), count);
    assert_true(count >= 1);
}

/* ---- COMMAND GETKEYS ---- */

#define WORDS_MAX 16

static void assert_keys(const struct own *own, bool with_flags, const char *call, const char *expected)
{
    char copy[128];
    struct slice words[WORDS_MAX];
    size_t n = 0;
    snprintf(copy, sizeof copy, "%s", call);
    for (char *word = strtok(copy, " "); word != NULL; word = strtok(NULL, " "))
        words[n++] = slice_str(word);
    char request[WORDS_MAX * EMIT_HEADER_MAX * 2 + sizeof copy];
    struct argv_walk walk;
    argv_walk_init(&walk, slice_of(request, emit_array(request, words, n)));
    struct build build;
    build_init(&build, true);
    docs_keys(&build, own, walk, with_flags);
    assert_built(&build, expected);
}

static void keys_are_found(void **state)
{
    (void)state;
    struct own reset = {
        .name = "limit|reset", .arity = -3, .first_key = 2, .last_key = -1, .key_step = 1, .arguments = ""};
    struct own pairs = {.name = "pairs", .arity = -3, .first_key = 1, .last_key = -2, .key_step = 2, .arguments = ""};
    struct own late = {.name = "late", .arity = -2, .first_key = 3, .last_key = 3, .key_step = 1, .arguments = ""};
    const struct own *check = own_find(SLICE("limit|check"));
    assert_keys(check, false, "LIMIT CHECK and and", "[and]");
    assert_keys(check, false, "LIMIT CHECK a k COST 2 AND and and and and AND PEEK", "[k and AND]");
    assert_keys(check, true, "LIMIT CHECK a k AND b l AND c", "[[k <+RW +access +update>] [l <+RW +access +update>]]");
    assert_keys(own_find(SLICE("limit|all")), false, "LIMIT ALL FIXED a 1/s and FUNNEL b 2/s", "[a b]");
    assert_keys(&keyed, false, "CL.THROTTLE k 1 2 3", "[k]");
    assert_keys(&keyed, true, "CL.THROTTLE k 1 2 3", "[[k <+RW +access +update>]]");
    assert_keys(&keyed, false, "cl.throttle k 1 2", "-ERR Invalid number of arguments specified for command");
    assert_keys(&reset, false, "LIMIT RESET a b c", "[a b c]");
    assert_keys(&reset, false, "LIMIT RESET", "-ERR Invalid number of arguments specified for command");
    assert_keys(&pairs, false, "PAIRS a 1 b 2", "[a b]");
    assert_keys(&late, false, "LATE a", "-ERR Invalid arguments specified for command");
    assert_keys(&keyless, false, "LIMIT STATUS x", "-ERR The command has no key arguments");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_has_ten_elements),
        cmocka_unit_test(an_old_entry_has_seven),
        cmocka_unit_test(keys_have_specs),
        cmocka_unit_test(a_container_has_subcommands),
        cmocka_unit_test(arguments_are_as_redis_writes_them),
        cmocka_unit_test(maps_are_flat_in_resp2),
        cmocka_unit_test(every_row_is_well_formed),
        cmocka_unit_test(top_level_names_have_no_bar),
        cmocka_unit_test(keys_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
