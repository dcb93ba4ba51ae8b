/*
 * Tests decisions without Redis against the cases of docs/algorithms.md: exact funnels, fixed
 * windows and the two counters of APPROX. Penalties and calendar windows are included. Only keys
 * with one set of rates and a clock that goes forward are compared.
 *
 * Runs in the root of the sources, where tests/it/conformance/cases is.
 */
#include "quota/local.h"

#include <glob.h>
#include <inttypes.h>
#include <stdlib.h>

#include "decision_kit.h"
#include "base/clock.h"
#include "base/hash.h"
#include "quota/outcome.h"

#define CASES "tests/it/conformance/cases/*.cases"
#define START_US INT64_C(1763714040000000) /* as in casefile.py */
#define LINE_ROOM 512
#define LINES_MAX 64
#define HELD_LEAST 60 /* compared cases; fewer: the files or their parser have changed */

/* A line `at TIME CALL = REPLY`. */
struct line {
    char call[LINE_ROOM];
    char reply[LINE_ROOM];
    int64_t at_us;
    struct quota_rule rule;
    struct slice key; /* points into `call` */
    bool is_ours;
};

struct one_case {
    char name[LINE_ROOM];
    struct line lines[LINES_MAX];
    size_t n;
};

static size_t n_held;

/* ---- reading ---- */

static int64_t read_time_us(const char *text)
{
    static const struct {
        const char *unit;
        int64_t us;
    } units[] = {{"us", 1},         {"ms", 1000},       {"s", 1000000}, {"m", 60000000},
                 {"h", 3600000000}, {"d", 86400000000}, {"", 1}};
    char *end;
    int64_t number = strtoll(text, &end, 10);
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(end, units[i].unit) == 0)
            return number * units[i].us;
    fail_msg("no time: %s", text);
    return 0;
}

static bool is_decided_here(const struct decision_request *ask)
{
    bool has_algorithm = ask->rule.kind == QUOTA_FUNNEL || ask->rule.kind == QUOTA_BUCKET ||
                         ask->rule.kind == QUOTA_FIXED || ask->rule.kind == QUOTA_APPROX;
    return has_algorithm && ask->mode == QUOTA_TAKE && !ask->counts_all && !ask->is_first &&
           ask->cost > 0;
}

static bool has_same_steps(const struct quota_rule *a, const struct quota_rule *b)
{
    bool is_same = a->kind == b->kind && a->n_rates == b->n_rates;
    for (unsigned i = 0; is_same && i < a->n_rates; i++)
        is_same =
            a->rates[i].step == b->rates[i].step && a->rates[i].calendar == b->rates[i].calendar;
    return is_same;
}

/* The key of a call. BAN and UNBAN name the key after the algorithm, and are not decided here. */
static struct slice key_of(const char *call)
{
    bool is_ban = strncmp(call, "LIMIT BAN ", 10) == 0 || strncmp(call, "LIMIT UNBAN ", 12) == 0;
    struct slice rest = slice_str(call), word = SLICE("");
    for (int i = 0; i < (is_ban ? 4 : 3); i++)
        (void)split_word(&rest, &word);
    return word;
}

/* True if the line can be decided here, after the earlier lines of its key. */
static bool suits(const struct one_case *c, struct line *line)
{
    struct decision_request ask;
    if (line->reply[0] == '-' || !kit_parse(&ask, line->call) || !is_decided_here(&ask))
        return false;
    line->rule = ask.rule;
    for (size_t i = 0; i < c->n; i++)
        if (slice_eq(c->lines[i].key, line->key) &&
            (line->at_us < c->lines[i].at_us || !has_same_steps(&c->lines[i].rule, &line->rule)))
            return false;
    return true;
}

/* Leaves out all lines of a key: either all are decided here, or none. */
static void leave_out(struct one_case *c, struct slice key)
{
    for (size_t i = 0; i < c->n; i++)
        if (slice_eq(c->lines[i].key, key))
            c->lines[i].is_ours = false;
}

static bool is_left_out(const struct one_case *c, struct slice key)
{
    for (size_t i = 0; i < c->n; i++)
        if (slice_eq(c->lines[i].key, key))
            return !c->lines[i].is_ours;
    return false;
}

/* A case with calls of several keys is left out as a whole. */
static bool has_several_keys(const struct one_case *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (strncmp(c->lines[i].call, "LIMIT ALL ", 10) == 0)
            return true;
    return false;
}

static void add_line(struct one_case *c, char *text)
{
    struct line *line = &c->lines[c->n];
    char *call = strchr(text, ' '), *reply = strstr(text, " = ");
    assert_true(c->n < LINES_MAX && call != NULL && reply != NULL);
    *reply = '\0';
    *call = '\0';
    line->at_us = read_time_us(text);
    snprintf(line->call, sizeof line->call, "%s", call + 1);
    snprintf(line->reply, sizeof line->reply, "%s", reply + 3);
    line->key = key_of(line->call);
    line->is_ours = !is_left_out(c, line->key) && suits(c, line);
    if (!line->is_ours)
        leave_out(c, line->key);
    c->n++;
}

/* ---- comparing ---- */

/* Prints an outcome as the file does. */
static void tell(const struct decision_request *ask, const struct quota_outcome *outcome, char *out,
                 size_t size)
{
    struct build build;
    size_t len = 0;
    build_init(&build, false);
    quota_reply(&build, ask, outcome);
    for (size_t i = 0; i + 1 < build.len && len + 1 < size; i++) {
        if (build.at[i] == ':')
            while (build.at[++i] != '\r' && len + 2 < size)
                out[len++] = build.at[i];
        else
            continue;
        out[len++] = ' ';
    }
    out[len > 0 ? len - 1 : 0] = '\0';
    build_fini(&build);
}

static void hold(struct one_case *c)
{
    struct local *local = local_new();
    bool is_held = false;
    for (size_t i = 0; i < c->n && !has_several_keys(c); i++) {
        struct quota_outcome outcome;
        char told[LINE_ROOM];
        const struct line *line = &c->lines[i];
        if (!line->is_ours)
            continue;
        is_held = true;
        struct decision_request ask = kit_request(line->call);
        struct local_time now = {NS_PER_S + (uint64_t)line->at_us * NS_PER_US,
                                 START_US + line->at_us};
        uint64_t hash = hash_bytes((struct hash_key){1, 2}, ask.key);
        assert_true(local_decide(local, &ask, &hash, now, &outcome));
        tell(&ask, &outcome, told, sizeof told);
        if (strcmp(told, line->reply) != 0)
            fail_msg("%s: %s = %s\n  found %s", c->name, line->call, line->reply, told);
    }
    local_free(local);
    n_held += is_held;
    c->n = 0;
}

static void hold_file(const char *path)
{
    static struct one_case c;
    char text[2 * LINE_ROOM];
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    c.n = 0;
    while (fgets(text, sizeof text, file) != NULL) {
        text[strcspn(text, "\n")] = '\0';
        if (strncmp(text, "case ", 5) == 0) {
            hold(&c);
            snprintf(c.name, sizeof c.name, "%.*s", LINE_ROOM - 1, text + 5);
        } else if (strncmp(text, "at ", 3) == 0) {
            add_line(&c, text + 3);
        }
    }
    hold(&c);
    fclose(file);
}

static void cases_hold(void **state)
{
    (void)state;
    glob_t found;
    if (glob(CASES, 0, NULL, &found) != 0)
        fail_msg("%s: not found: start this in the root of the sources", CASES);
    for (size_t i = 0; i < found.gl_pathc; i++)
        hold_file(found.gl_pathv[i]);
    globfree(&found);
    assert_true(n_held >= HELD_LEAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(cases_hold)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
