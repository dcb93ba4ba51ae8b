#include "admin/findings.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "upstream/lane/lack.h"

#define NAMED_MOST 3     /* limits that a finding names (chosen) */
#define ERRORS_MANY 0.01 /* share of all commands; a lower share of errors is normal (chosen) */

/* ---- numbers, in the form of page/figures.js ---- */

void figure_count(struct text *out, uint64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%" PRIu64, n);
    for (int i = 0; i < len; i++)
        text_print(out, "%s%c", i > 0 && (len - i) % 3 == 0 ? "," : "", digits[i]);
}

/* Writes one decimal, and "4" instead of "4.0". */
static void short_real(struct text *out, double value)
{
    char digits[32];
    int len = snprintf(digits, sizeof digits, "%.1f", value);
    if (len > 2 && strcmp(digits + len - 2, ".0") == 0)
        digits[len - 2] = '\0';
    text_print(out, "%s", digits);
}

/* Each bound is the least value that rounding would print in the next form. */
void figure_rate(struct text *out, double per_s)
{
    if (per_s < 9.95)
        short_real(out, per_s);
    else if (per_s < 9999.5)
        figure_count(out, (uint64_t)(per_s + 0.5));
    else if (per_s < 999950)
        text_print(out, "%.1fk", per_s / 1e3);
    else
        text_print(out, "%.2fM", per_s / 1e6);
}

void figure_per_s(struct text *out, double per_s)
{
    figure_rate(out, per_s);
    text_add(out, SLICE("/s"));
}

static void three_digits(struct text *out, double value)
{
    if (value < 9.95)
        short_real(out, value);
    else
        text_print(out, "%.0f", value);
}

void figure_duration(struct text *out, double s)
{
    if (s <= 0) {
        text_add(out, SLICE("\u2013"));
        return;
    }
    double us = s * 1e6;
    three_digits(out, us < 999.5 ? us : us < 999500 ? us / 1e3 : s);
    text_print(out, " %s", us < 999.5 ? "\u00b5s" : us < 999500 ? "ms" : "s");
}

void figure_percent(struct text *out, double ratio)
{
    three_digits(out, ratio * 100);
    text_add(out, SLICE(" %"));
}

static struct finding *findings_add(struct findings *findings, enum finding_level level,
                                    const char *at)
{
    struct finding *finding = &findings->rows[findings->n++];
    *finding = (struct finding){.level = level, .at = at};
    return finding;
}

static double now(const struct snapshot *s, enum series series)
{
    return history_now(s->history, series);
}

/* ---- the process and Redis ---- */

static void find_drain(struct findings *findings, const struct snapshot *s)
{
    if (!s->is_draining)
        return;
    struct finding *finding = findings_add(findings, FINDING_BAD, "listeners");
    text_add(&finding->title, SLICE("Draining"));
    uint64_t left = (uint64_t)now(s, SERIES_CONNECTIONS);
    text_add(&finding->more, SLICE("weir accepts no new clients; "));
    figure_count(&finding->more, left);
    text_print(&finding->more, " connection%s unfinished work", left == 1 ? " has" : "s have");
}

/* "; 154 commands in flight, the oldest for 6.8 s" */
static void put_waiting(struct text *out, const struct snapshot *s)
{
    if (s->health.oldest_ns == 0)
        return;
    text_add(out, SLICE("; "));
    figure_count(out, count_read(&s->lanes.in_flight));
    text_add(out, SLICE(" commands in flight, the oldest for "));
    figure_duration(out, (double)s->health.oldest_ns / (double)NS_PER_S);
}

static const char *default_node_name(const struct snapshot *s)
{
    const struct snapshot_node *default_node = snapshot_default_node(s);
    return default_node != NULL ? default_node->address : s->upstream;
}

/* Returns a node that answers but cannot be used, NULL if there is none. */
static const struct snapshot_node *rejected_node(const struct snapshot *s)
{
    for (size_t i = 0; i < s->n_nodes; i++)
        if (s->nodes[i].why[0] != '\0')
            return &s->nodes[i];
    return NULL;
}

static void find_rejected(struct findings *findings, const struct snapshot_node *node)
{
    struct finding *finding = findings_add(findings, FINDING_BAD, "upstream-tile");
    text_add(&finding->title, SLICE("Redis cannot be served"));
    text_print(&finding->more, "%s: %s", node->address, node->why);
}

/* Adds a finding for each lack of any node, with the remedy for the operator. */
static void find_lacks(struct findings *findings, const struct snapshot *s)
{
    uint32_t lacks = 0;
    for (size_t i = 0; i < s->n_nodes; i++)
        lacks |= s->nodes[i].lacks;
    for (int lack = 0; lack < LACK_COUNT; lack++) {
        if ((lacks >> lack & 1) == 0)
            continue;
        struct finding *finding = findings_add(findings, FINDING_WARN, "upstream-tile");
        text_print(&finding->title, "Redis %s", lack_what((enum lack)lack));
        text_add(&finding->more, slice_str(lack_remedy((enum lack)lack, s->is_cluster)));
    }
}

static void find_masterless(struct findings *findings, const struct snapshot *s)
{
    struct finding *finding = findings_add(findings, FINDING_BAD, "upstream-tile");
    text_add(&finding->title, SLICE("Redis has no master"));
    text_add(&finding->more, slice_str(s->not_ready));
    put_waiting(&finding->more, s);
}

/* Adds a finding for servers other than the master that do not answer. */
static void find_lost(struct findings *findings, const struct snapshot *s)
{
    struct finding *finding = NULL;
    for (size_t i = 0; (s->is_replicated || s->is_cluster) && i < s->n_nodes; i++) {
        const struct snapshot_node *node = &s->nodes[i];
        if (node->use == USED_FOR_ALL || node_state_is_up(node->health.state))
            continue;
        if (finding == NULL) {
            finding = findings_add(findings, FINDING_WARN, "nodes-card");
            text_add(&finding->title, SLICE("Servers are away"));
        } else {
            text_add(&finding->more, SLICE(", "));
        }
        text_add(&finding->more, slice_str(node->address));
    }
}

static void find_redis(struct findings *findings, const struct snapshot *s)
{
    static const char *const titles[] = {[NODE_BUSY] = "Redis is busy",
                                         [NODE_PAUSED] = "Redis is paused",
                                         [NODE_SILENT] = "Redis does not answer",
                                         [NODE_AWAY] = "Redis is away"};
    enum node_state state = s->health.state;
    if (state == NODE_UP)
        return;
    if (s->is_replicated && snapshot_default_node(s) == NULL) {
        find_masterless(findings, s);
        return;
    }
    if (state == NODE_AWAY && rejected_node(s) != NULL) {
        find_rejected(findings, rejected_node(s));
        return;
    }
    struct finding *finding = findings_add(
        findings, node_state_is_up(state) ? FINDING_WARN : FINDING_BAD, "upstream-tile");
    text_add(&finding->title, slice_str(titles[state]));
    if (state == NODE_BUSY)
        text_add(&finding->more, SLICE("a script runs"));
    else if (state == NODE_PAUSED)
        text_add(&finding->more, SLICE("CLIENT PAUSE suspends commands"));
    else
        text_add(&finding->more, slice_str(default_node_name(s)));
    if (state == NODE_SILENT) {
        text_add(&finding->more, SLICE(" for "));
        figure_duration(&finding->more, (double)s->health.silence_ns / (double)NS_PER_S);
    }
    put_waiting(&finding->more, s);
}

/*
 * Adds findings for slots that no node serves, and for a weir that is not ready although Redis is
 * up.
 */
static void find_unready(struct findings *findings, const struct snapshot *s)
{
    if (s->partly[0] != '\0') {
        struct finding *finding = findings_add(findings, FINDING_BAD, "upstream-tile");
        text_add(&finding->title, SLICE("Slots are not served"));
        text_add(&finding->more, slice_str(s->partly));
    }
    if (s->not_ready[0] == '\0' || s->is_draining || !node_state_is_up(s->health.state))
        return;
    struct finding *finding = findings_add(findings, FINDING_BAD, "upstream-tile");
    text_add(&finding->title, SLICE("Not ready"));
    text_add(&finding->more, slice_str(s->not_ready));
}

static void find_reload(struct findings *findings, const struct snapshot *s)
{
    if (s->is_reload_good)
        return;
    struct finding *finding = findings_add(findings, FINDING_BAD, "process");
    text_add(&finding->title, SLICE("The last reload failed"));
    text_add(&finding->more, SLICE("weir keeps the running configuration: "));
    text_add(&finding->more, slice_str(s->reload_error));
}

static void find_overflow(struct findings *findings, const struct snapshot *s)
{
    if (!s->is_overflowed)
        return;
    struct finding *finding = findings_add(findings, FINDING_WARN, "process");
    text_add(&finding->title, SLICE("max-subjects is reached"));
    text_add(&finding->more, SLICE("new subjects share one state"));
}

/* ---- limits ---- */

static size_t findings_count(const struct snapshot *s, enum limit_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < s->n_limits; i++)
        n += s->limits[i].state == state;
    return n;
}

/* "free/heavy, free/read, batch/all and 4 more" */
static void put_names(struct text *out, const struct snapshot *s, enum limit_state state, size_t n)
{
    size_t named = 0;
    for (size_t i = 0; i < s->n_limits && named < NAMED_MOST; i++) {
        if (s->limits[i].state != state)
            continue;
        text_print(out, "%s%s", named > 0 ? ", " : "", s->limits[i].rule);
        named++;
    }
    if (n > named)
        text_print(out, " and %zu more", n - named);
}

static void find_limits(struct findings *findings, const struct snapshot *s, enum limit_state state,
                        enum finding_level level, double per_s, const char *verb)
{
    size_t n = findings_count(s, state);
    if (n == 0)
        return;
    struct finding *finding = findings_add(findings, level, "limits-card");
    text_print(&finding->title, "%zu of %zu limits %s", n, s->n_limits, verb);
    if (per_s > 0) { /* 0: the limit last acted some seconds ago */
        figure_per_s(&finding->more, per_s);
        text_add(&finding->more, SLICE(": "));
    }
    put_names(&finding->more, s, state, n);
}

static double refused_by_limits(const struct snapshot *s)
{
    double all = now(s, SERIES_REFUSED), blocked = now(s, SERIES_BLOCKED);
    return all > blocked ? all - blocked : 0;
}

/* Adds a finding for blocks that refuse commands now. A block without traffic is not a finding. */
static void find_blocks(struct findings *findings, const struct snapshot *s)
{
    if (s->blocks == 0 || !s->is_block_active)
        return;
    struct finding *finding = findings_add(findings, FINDING_WARN, "top-refused");
    text_print(&finding->title, "%zu subject%s blocked", s->blocks, s->blocks == 1 ? "" : "s");
    if (now(s, SERIES_BLOCKED) > 0) {
        figure_per_s(&finding->more, now(s, SERIES_BLOCKED));
        text_add(&finding->more, SLICE(" refused by the block"));
    } else {
        text_add(&finding->more, SLICE("every command is refused"));
    }
}

/* ---- errors ---- */

static void find_errors(struct findings *findings, const struct snapshot *s, enum series series,
                        enum finding_level level, const char *owner)
{
    double errors = now(s, series);
    double commands = now(s, SERIES_COMMANDS);
    if (errors <= 0 || errors < commands * ERRORS_MANY)
        return;
    struct finding *finding = findings_add(findings, level, "commands-card");
    text_print(&finding->title, "%s answers ", owner);
    figure_rate(&finding->title, errors);
    text_add(&finding->title, SLICE(" errors/s"));
    text_add(&finding->more, SLICE("to "));
    figure_percent(&finding->more, commands > errors ? errors / commands : 1);
    text_add(&finding->more, SLICE(" of all commands"));
}

static void find_nothing(struct findings *findings, const struct snapshot *s)
{
    struct finding *finding = findings_add(findings, FINDING_GOOD, "limits-card");
    text_add(&finding->title, SLICE("Nothing is wrong"));
    if (s->n_limits == 0)
        text_add(&finding->more, SLICE("no limits are configured"));
    else
        text_print(&finding->more, "none of %zu limit%s refuses", s->n_limits,
                   s->n_limits == 1 ? "" : "s");
    if (s->blocks > 0)
        text_print(&finding->more, "; %zu subject%s blocked", s->blocks, s->blocks == 1 ? "" : "s");
}

void findings_make(struct findings *findings, const struct snapshot *s)
{
    findings->n = 0;
    find_drain(findings, s);
    find_redis(findings, s);
    find_unready(findings, s);
    find_errors(findings, s, SERIES_ERRORS, FINDING_BAD, "weir");
    find_limits(findings, s, LIMIT_REFUSING, FINDING_BAD, refused_by_limits(s), "refusing");
    find_reload(findings, s);
    find_errors(findings, s, SERIES_REDIS_ERRORS, FINDING_WARN, "Redis");
    find_limits(findings, s, LIMIT_DELAYING, FINDING_WARN, now(s, SERIES_DELAYED), "delaying");
    find_limits(findings, s, LIMIT_SHADOWING, FINDING_WARN, now(s, SERIES_SHADOWED), "shadowing");
    find_lacks(findings, s);
    find_lost(findings, s);
    find_blocks(findings, s);
    find_overflow(findings, s);
    if (findings->n == 0)
        find_nothing(findings, s);
}

void findings_free(struct findings *findings)
{
    for (size_t i = 0; i < findings->n; i++) {
        text_fini(&findings->rows[i].title);
        text_fini(&findings->rows[i].more);
    }
}

const char *finding_level_name(enum finding_level level)
{
    static const char *const names[] = {
        [FINDING_BAD] = "bad", [FINDING_WARN] = "warn", [FINDING_GOOD] = "good"};
    return names[level];
}
