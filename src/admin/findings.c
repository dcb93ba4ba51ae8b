#include "admin/findings.h"

#include "admin/figures.h"
#include "base/clock.h"

#define NAMED_MOST 3     /* limits that a finding names */
#define ERRORS_MANY 0.01 /* of all commands: a few wrong ones are every day's */

static struct finding *add(struct findings *findings, enum finding_level level, const char *at)
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
    struct finding *finding = add(findings, FINDING_BAD, "listeners");
    text_add(&finding->title, SLICE("Draining"));
    uint64_t left = (uint64_t)now(s, SERIES_CONNECTIONS);
    text_add(&finding->more, SLICE("no new clients; "));
    figure_count(&finding->more, left);
    text_print(&finding->more, " connection%s still in the middle of something", left == 1 ? " is" : "s are");
}

static void find_unready(struct findings *findings, const struct snapshot *s)
{
    static const char *const titles[] = {[NODE_UP] = "Not ready",
                                         [NODE_BUSY] = "Not ready",
                                         [NODE_PAUSED] = "Not ready",
                                         [NODE_SILENT] = "Redis does not answer",
                                         [NODE_AWAY] = "Redis is away"};
    bool is_drain = s->is_draining && node_state_is_up(s->health.state);
    if (s->not_ready[0] == '\0' || is_drain)
        return;
    struct finding *finding = add(findings, FINDING_BAD, "upstream-tile");
    text_add(&finding->title, slice_str(titles[s->health.state]));
    if (!s->is_draining)
        text_add(&finding->more, slice_str(s->not_ready));
}

/* It is there, and does not get on with what clients ask. */
static void find_hold(struct findings *findings, const struct snapshot *s)
{
    bool is_busy = s->health.state == NODE_BUSY;
    if (!is_busy && s->health.state != NODE_PAUSED)
        return;
    struct finding *finding = add(findings, FINDING_WARN, "upstream-tile");
    text_add(&finding->title, is_busy ? SLICE("Redis is busy") : SLICE("Redis is paused"));
    text_add(&finding->more, is_busy ? SLICE("a script runs") : SLICE("CLIENT PAUSE holds commands back"));
    if (s->health.oldest_ns == 0)
        return;
    text_add(&finding->more, SLICE("; the oldest command has waited "));
    figure_duration(&finding->more, (double)s->health.oldest_ns / (double)NS_PER_S);
}

static void find_reload(struct findings *findings, const struct snapshot *s)
{
    if (s->is_reload_good)
        return;
    struct finding *finding = add(findings, FINDING_BAD, "process");
    text_add(&finding->title, SLICE("The last reload failed"));
    text_add(&finding->more, SLICE("what ran before goes on: "));
    text_add(&finding->more, slice_str(s->reload_error));
}

static void find_overflow(struct findings *findings, const struct snapshot *s)
{
    if (!s->is_overflowed)
        return;
    struct finding *finding = add(findings, FINDING_WARN, "process");
    text_add(&finding->title, SLICE("All max-subjects places are taken"));
    text_add(&finding->more, SLICE("newcomers share one subject"));
}

/* ---- what limits do ---- */

static size_t count(const struct snapshot *s, enum limit_state state)
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
                        enum finding_level level, enum series series, const char *verb)
{
    size_t n = count(s, state);
    if (n == 0)
        return;
    struct finding *finding = add(findings, level, "limits-card");
    text_print(&finding->title, "%zu of %zu limits %s", n, s->n_limits, verb);
    if (now(s, series) > 0) { /* else it has stopped some seconds ago */
        figure_per_s(&finding->more, now(s, series));
        text_add(&finding->more, SLICE(": "));
    }
    put_names(&finding->more, s, state, n);
}

/* ---- errors ---- */

static void find_errors(struct findings *findings, const struct snapshot *s, enum series series,
                        enum finding_level level, const char *whose)
{
    double errors = now(s, series);
    double commands = now(s, SERIES_COMMANDS);
    if (errors <= 0 || errors < commands * ERRORS_MANY)
        return;
    struct finding *finding = add(findings, level, "commands-card");
    text_print(&finding->title, "%s answers ", whose);
    figure_rate(&finding->title, errors);
    text_add(&finding->title, SLICE(" errors/s"));
    text_add(&finding->more, SLICE("to "));
    figure_percent(&finding->more, commands > errors ? errors / commands : 1);
    text_add(&finding->more, SLICE(" of all commands"));
}

static void find_nothing(struct findings *findings, const struct snapshot *s)
{
    struct finding *finding = add(findings, FINDING_GOOD, "limits-card");
    text_add(&finding->title, SLICE("Nothing is wrong"));
    if (s->n_limits == 0)
        text_add(&finding->more, SLICE("no limits are configured"));
    else
        text_print(&finding->more, "none of %zu limit%s refuses", s->n_limits, s->n_limits == 1 ? "" : "s");
}

void findings_make(struct findings *findings, const struct snapshot *s)
{
    findings->n = 0;
    find_drain(findings, s);
    find_unready(findings, s);
    find_hold(findings, s);
    find_errors(findings, s, SERIES_ERRORS, FINDING_BAD, "weir");
    find_limits(findings, s, LIMIT_REFUSING, FINDING_BAD, SERIES_REFUSED, "refusing");
    find_reload(findings, s);
    find_errors(findings, s, SERIES_REDIS_ERRORS, FINDING_WARN, "Redis");
    find_limits(findings, s, LIMIT_DELAYING, FINDING_WARN, SERIES_DELAYED, "delaying");
    find_limits(findings, s, LIMIT_SHADOWING, FINDING_WARN, SERIES_SHADOWED, "shadowing");
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
    static const char *const names[] = {[FINDING_BAD] = "bad", [FINDING_WARN] = "warn", [FINDING_GOOD] = "good"};
    return names[level];
}
