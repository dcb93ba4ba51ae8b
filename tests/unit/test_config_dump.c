/* Tests that a dumped configuration parses to the same meaning: the example, and random ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "config_kit.h"
#include "dice.h"
#include "run/config/config_dump.h"
#include "run/config/config_keys.h"

/* A configuration and its dump. */
struct dumped {
    struct config_file file;
    struct config *config; /* NULL: the text has an error */
    char *text;            /* the dump; heap; without the lines that name files */
};

static struct dumped dump(const char *text)
{
    struct dumped d = {.file = {.path = "weir.conf", .report = on_report, .arg = &said}};
    char *written = NULL;
    size_t len = 0;
    said = (struct said){0};
    write_bytes("weir.conf", text, strlen(text));
    d.config = config_read(&d.file, table);
    if (d.config == NULL)
        return d;
    FILE *out = open_memstream(&written, &len);
    config_dump(d.config, &d.file, out);
    assert_int_equal(fclose(out), 0);
    d.text = strdup(strstr(written, "\n\n"));
    free(written);
    return d;
}

static void drop(struct dumped *d)
{
    config_free(d->config);
    config_file_fini(&d->file);
    free(d->text);
}

static void assert_same_limits(const struct policy *a, const struct policy *b)
{
    assert_string_equal(a->name, b->name);
    assert_int_equal(a->weight, b->weight);
    assert_int_equal(a->is_low, b->is_low);
    assert_int_equal(a->is_admin, b->is_admin);
    assert_int_equal(a->n_matches, b->n_matches);
    assert_int_equal(a->n_limits, b->n_limits);
    assert_memory_equal(a->binds, b->binds, a->n_binds * sizeof *a->binds);
    for (size_t i = 0; i < a->n_limits; i++) {
        const struct limit *x = &a->limits[i], *y = &b->limits[i];
        assert_memory_equal(&x->rate, &y->rate, sizeof x->rate);
        assert_int_equal(x->delay_ns, y->delay_ns);
        assert_int_equal(x->position, y->position);
        assert_int_equal(x->unit, y->unit);
        assert_int_equal(x->scope, y->scope);
        assert_int_equal(x->action, y->action);
        assert_string_equal(x->label, y->label);
    }
}

/* Compares the members that keys fill with a number or a word. */
static void assert_same_settings(const struct config *a, const struct config *b)
{
    for (size_t i = 0; i < config_keys_count(); i++) {
        const struct config_key *key = config_key_at(i);
        if (key->parse != NULL || key->words != NULL)
            assert_memory_equal((const char *)a + key->offset, (const char *)b + key->offset,
                                key->size);
    }
    assert_memory_equal(&a->rules.identity, &b->rules.identity, sizeof a->rules.identity);
    assert_int_equal(a->n_listens, b->n_listens);
    for (size_t i = 0; i < a->n_listens; i++)
        assert_true(address_eq(&a->listens[i].address, &b->listens[i].address) &&
                    a->listens[i].has_proxy_header == b->listens[i].has_proxy_header);
    assert_int_equal(a->sources.form, b->sources.form);
    assert_int_equal(a->sources.n, b->sources.n);
    for (size_t i = 0; i < a->sources.n; i++)
        assert_true(address_eq(&a->sources.addresses[i], &b->sources.addresses[i]));
    if (a->sources.form == SOURCES_SENTINEL)
        assert_string_equal(a->sources.master_name, b->sources.master_name);
}

/* Dumps, parses the dump and dumps again. False: the text has an error. */
static bool goes_round(const char *text)
{
    struct dumped first = dump(text);
    if (first.config == NULL) {
        drop(&first);
        return false;
    }
    struct dumped second = dump(first.text);
    if (second.config == NULL || said.warnings > 0 || strcmp(first.text, second.text) != 0)
        fail_msg("%s\nbecame\n%s\nof which is said\n%s\nand which became\n%s", text, first.text,
                 said.text, second.text != NULL ? second.text : "nothing");
    const struct policies *a = first.config->rules.policies, *b = second.config->rules.policies;
    assert_int_equal(policies_count(a), policies_count(b));
    for (size_t i = 0; i < policies_count(a); i++)
        assert_same_limits(policies_at(a, i), policies_at(b, i));
    assert_same_settings(first.config, second.config);
    assert_int_equal(named_count(first.config->rules.named),
                     named_count(second.config->rules.named));
    drop(&first);
    drop(&second);
    return true;
}

static void test_nothing_becomes_the_defaults(void **state)
{
    (void)state;
    assert_true(goes_round(""));
    struct dumped d = dump("");
    assert_non_null(strstr(d.text, "\nlisten = 127.0.0.1:6380\n"));
    assert_non_null(strstr(d.text, "\nworkers = cores\n"));
    assert_non_null(strstr(d.text, "\nidentity = user, ip\n"));
    assert_null(strstr(d.text, "include"));
    assert_null(strstr(d.text, "turns"));
    assert_non_null(strstr(d.text, "\nfair-share = on\n"));
    drop(&d);
}

static void test_limits_are_written_with_all_their_words(void **state)
{
    (void)state;
    struct dumped d = dump(
        "[weir]\nlimit-when-down = allow\n[policy default]\nread = 0.3/s, 10000/h over delay 1s\n"
        "bytes-in = 1mb/s\ninflight = 5\n@scripting = deny\n[limit n]\nfixed = 1/s\n");
    assert_non_null(strstr(d.text, "\n[policy default]\n"
                                   "admin = no\nweight = 100\npriority = normal\n"
                                   "read = 3/10s burst 3 per subject over refuse\n"
                                   "read = 10000/h burst 1 per subject over delay 1s\n"
                                   "bytes-in = 1mb/s burst 1mb per subject over refuse\n"
                                   "inflight = 5 per subject over refuse\n"
                                   "@scripting = deny\n"));
    assert_non_null(strstr(d.text, "\n[limit n]\nfixed = 1/s\nover = refuse\nwhen-down = allow\n"));
    drop(&d);
}

static void test_variables_become_what_they_hold(void **state)
{
    char many[2000] = "";
    (void)state;
    for (int i = 0; i < 60; i++)
        snprintf(many + strlen(many), sizeof many - strlen(many), "%suser:number-%d",
                 i > 0 ? "," : "", i);
    setenv("MANY", many, 1);
    setenv("COMMENT", "limit ;:", 1);
    setenv("PORT", "7000", 1);
    static const char text[] =
        "[weir]\nlisten = 127.0.0.1:${PORT}\nlimit-prefix = ${COMMENT}\nupstream-user = $${x}\n"
        "upstream-password-file = secret\n[policy a]\nmatch = ${MANY}\nall = 1/s\n";
    write_bytes("secret", "hunter2", 7);
    chmod("secret", 0600);
    struct dumped d = dump(text);
    assert_string_equal(said.text, "");
    assert_non_null(strstr(d.text, "\nlisten = 127.0.0.1:7000\n"));
    assert_non_null(strstr(d.text, "\nlimit-prefix = ${COMMENT}\n"));
    assert_non_null(strstr(d.text, "\nupstream-user = $${x}\n"));
    assert_non_null(strstr(d.text, "\nupstream-password-file = secret\n"));
    assert_null(strstr(d.text, "hunter2"));
    assert_non_null(strstr(d.text, "user:number-59\n"));
    drop(&d);
    assert_true(goes_round(text));
}

static void test_every_form_of_upstream(void **state)
{
    (void)state;
    assert_true(goes_round("[weir]\nupstream = a:1\nupstream = b:2, [::1]:3\n"));
    assert_true(goes_round("[weir]\nupstream = sentinel:m@tls:a:1, tls:b:2\nupstream = tls:c:3\n"));
    struct dumped d = dump("[weir]\nupstream = sentinel:m@a:1,b:2\nupstream = c:3\n");
    assert_non_null(strstr(d.text, "\nupstream = sentinel:m@a:1, b:2\nupstream = c:3\n"));
    drop(&d);
}

/* ---- random ones ---- */

struct writer {
    uint64_t seed;
    char text[8192];
};

__attribute__((format(printf, 2, 3))) static void put(struct writer *w, const char *format, ...)
{
    va_list args;
    size_t len = strlen(w->text);
    va_start(args, format);
    vsnprintf(w->text + len, sizeof w->text - len, format, args);
    va_end(args);
}

static const char *one_of(struct writer *w, const char *const *words, size_t n)
{
    return words[dice_below(&w->seed, n)];
}

#define ONE_OF(w, ...)                                                                             \
    one_of(w, (const char *const[]){__VA_ARGS__},                                                  \
           sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void put_limit(struct writer *w)
{
    const char *what =
        ONE_OF(w, "all", "read", "heavy", "@slow", "cmd.get", "cost", "bytes-in", "inflight",
               "connections", "connects", "auth-failures", "control", "cmd.config|get");
    bool is_gauge = strcmp(what, "inflight") == 0 || strcmp(what, "connections") == 0;
    bool is_bytes = strcmp(what, "bytes-in") == 0;
    const char *unit = is_bytes ? ONE_OF(w, "kb", "mb", "") : ONE_OF(w, "k", "", "m");
    put(w, "%s = %d%s%s", what, (int)dice_scale(&w->seed, 5000), unit,
        is_gauge ? "" : ONE_OF(w, "/s", "/5m", "/250ms", "/d", "/1500ms"));
    if (!is_gauge && dice_below(&w->seed, 2))
        put(w, " burst %d", (int)dice_scale(&w->seed, 100000));
    if (dice_below(&w->seed, 3) == 0)
        put(w, " per %s", ONE_OF(w, "subject", "connection", "policy"));
    if (dice_below(&w->seed, 2) || strcmp(what, "control") == 0)
        put(w, " over %s", ONE_OF(w, "close", "delay 1s", "shadow", "delay 2500ms", "close"));
    put(w, "\n");
}

static void put_policy(struct writer *w, int number)
{
    put(w, "[policy p%d]\nmatch = %s%d, ip:10.%d.0.0/16\n", number,
        ONE_OF(w, "user:a*", "name:[ab]", "KEY:x:", "tls: ?"), number, number);
    if (dice_below(&w->seed, 2))
        put(w, "%s\n", ONE_OF(w, "Weight = 5", "priority = low", "ADMIN = Yes", "cmd.keys = Deny"));
    for (uint64_t i = dice_below(&w->seed, 4); i > 0; i--)
        put_limit(w);
}

static void put_all(struct writer *w)
{
    put(w, "[weir]\n%s\n%s\n%s\n",
        ONE_OF(w, "listen = tls:a:1,unix:/x ,[::1]:5", "upstream = unix:/y", "MODE = Shadow"),
        ONE_OF(w, "identity = key:2, ip6/64\nidentity = ip/24", "memory-limit = 5mb",
               "log = /x,stderr"),
        ONE_OF(w, "slowlog-log-slower-than = off", "cl-throttle = OFF", "error-prefix = SLOW",
               "workers = 7", "proxy-protocol-from = unix, 10.0.0.0/8\nlisten = b:9 proxy"));
    put(w, "[class Heavy]\ncommands = keys, -sort\ncommands = %s\n",
        ONE_OF(w, "other", "@slow,-get", "cmd.config|get"));
    put(w, "[class other]\ncommands = all, -@dangerous\n");
    for (uint64_t i = dice_below(&w->seed, 5); i > 0; i--)
        put_policy(w, (int)dice_below(&w->seed, 3));
    put(w, "[cost]\n%s\nget = %d per key\n",
        ONE_OF(w, "@slow = 5", "heavy = 9", "mget = 1 per key"), (int)dice_scale(&w->seed, 100));
    put(w, "[limit %s]\n%s\n%s\n", ONE_OF(w, "Sign", "a"),
        ONE_OF(w, "sliding = 5/s, 9/m", "bucket = 1/s burst 5"),
        ONE_OF(w, "over = shadow", "when-down = Local", "penalty = 1h..2h", ""));
    put(w, "[policy default]\n");
    put_limit(w);
    put(w, "[admin]\n%s\n",
        ONE_OF(w, "listen = 127.0.0.1:9", "socket = /a/b", "host = x\nhost = y, z"));
}

static void test_random_ones(void **state)
{
    unsigned good = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= dice_rounds(600); seed++) {
        struct writer w = {.seed = seed};
        put_all(&w);
        good += goes_round(w.text);
    }
    assert_true(good > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_becomes_the_defaults),
        cmocka_unit_test(test_limits_are_written_with_all_their_words),
        cmocka_unit_test(test_variables_become_what_they_hold),
        cmocka_unit_test(test_every_form_of_upstream),
        cmocka_unit_test(test_random_ones),
    };
    return cmocka_run_group_tests(tests, enter_folder, leave_folder);
}
