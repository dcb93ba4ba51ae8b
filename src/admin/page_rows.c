#include "admin/page_rows.h"

#include <inttypes.h>
#include <string.h>

#include "admin/chart.h"
#include "admin/figures.h"
#include "admin/holders.h"
#include "admin/own_lines.h"
#include "limit/policy/rate.h"

#define SPARK_HEIGHT 28.0

static void escaped(struct text *out, const char *text)
{
    text_add_html(out, slice_str(text));
}

static void none(struct text *out, int columns, const char *why)
{
    text_print(out, "<tr><td class=\"none\" colspan=\"%d\">%s</td></tr>", columns, why);
}

/* A number, pale where there is none. On narrow screens its label stands above it. */
static void count_cell(struct text *out, const char *label, const char *class, uint64_t n)
{
    text_print(out, "<td class=\"n%s\" data-l=\"%s\">", n == 0 ? " zero" : class, label);
    figure_count(out, n);
    text_add(out, SLICE("</td>"));
}

/* ---- nodes ---- */

uint64_t lanes_there(const struct lane_counts *lanes)
{
    uint64_t sum = 0;
    for (int in = LIST_NONE + 1; in < LIST_COUNT; in++)
        sum += count_read(&lanes->lists[in]);
    return sum;
}

uint64_t lanes_lost(const struct lane_counts *lanes)
{
    uint64_t sum = 0;
    for (int loss = 0; loss < LOSS_COUNT; loss++)
        sum += count_read(&lanes->lost[loss]);
    return sum;
}

const char *page_node_state(enum node_state state)
{
    return state == NODE_SILENT ? "does not answer" : node_state_name(state);
}

static void node_cell(struct text *out, const char *label, bool is_known)
{
    text_print(out, "<td class=\"n\" data-l=\"%s\">%s", label, is_known ? "" : "\u2013");
}

/* How many slots of a cluster it serves, and how many are on their way. */
static void node_slots(struct text *out, const struct snapshot_node *node)
{
    node_cell(out, "Slots", node->slots != 0);
    if (node->slots != 0)
        figure_count(out, node->slots);
    if (node->slots_moving != 0) {
        text_add(out, SLICE(", "));
        figure_count(out, node->slots_moving);
        text_add(out, SLICE(" moving"));
    }
    text_add(out, SLICE("</td>"));
}

/* What it is, and what it is used for. */
static void node_place(struct text *out, const struct snapshot_node *node)
{
    text_print(out, "<td>%s</td><td>%s</td>", node->role, node_use_name(node->use));
    node_slots(out, node);
    node_cell(out, "Epoch", node->epoch != 0);
    if (node->epoch != 0)
        text_print(out, "%" PRIu64, node->epoch);
    text_add(out, SLICE("</td>"));
    node_cell(out, "Lag", node->lag_ms != SNAPSHOT_NO_LAG);
    if (node->lag_ms != SNAPSHOT_NO_LAG)
        figure_duration(out, (double)node->lag_ms / 1000.0);
    text_add(out, SLICE("</td>"));
}

void page_nodes(struct text *out, const struct snapshot *s)
{
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct snapshot_node *node = &s->nodes[i];
        text_add(out, SLICE("<tr><th scope=\"row\" class=\"who\">"));
        escaped(out, node->address);
        text_print(out, "</th><td class=\"%s\">%s</td>", node_state_is_up(node->health.state) ? "up" : "down",
                   page_node_state(node->health.state));
        node_place(out, node);
        count_cell(out, "Lanes", "", lanes_there(&node->lanes));
        count_cell(out, "In flight", "", count_read(&node->lanes.in_flight));
        count_cell(out, "Requests", "", count_read(&node->lanes.requests));
        count_cell(out, "Failed", "", lanes_lost(&node->lanes));
        node_cell(out, "Changed", node->changed_unix_ms != 0);
        if (node->changed_unix_ms != 0)
            figure_time(out, node->changed_unix_ms);
        text_add(out, SLICE("</td></tr>"));
    }
}

/* ---- limits ---- */

static bool is_of_bytes(const struct snapshot_limit *limit)
{
    return strncmp(limit->unit, "bytes", 5) == 0;
}

/* As it is written in the file: "burst 400", "burst 8mb". */
static void put_burst(struct text *out, const struct snapshot_limit *limit)
{
    char bytes[32];
    if (is_of_bytes(limit) && rate_print_bytes(limit->burst, bytes, sizeof bytes) > 0)
        text_print(out, " burst %s", bytes);
    else
        text_print(out, " burst %" PRIu64, limit->burst);
}

/* " 200/s burst 400, per subject, refuse" */
static void describe_rate(struct text *out, const struct snapshot_limit *limit)
{
    if (limit->amount[0])
        text_add(out, SLICE(" "));
    escaped(out, limit->amount);
    if (limit->per_s > 0)
        put_burst(out, limit);
    text_add(out, SLICE(", per "));
    escaped(out, limit->scope);
    text_add(out, SLICE(", "));
    escaped(out, limit->action);
}

/* "commands 200/s burst 400, per subject, refuse", "commands denied" */
static void describe(struct text *out, const struct snapshot *s, const struct snapshot_limit *limit)
{
    escaped(out, limit->unit);
    if (snapshot_limit_denies(limit))
        text_add(out, SLICE(" denied"));
    else
        describe_rate(out, limit);
    if (limit->is_shadow && strcmp(limit->action, "shadow") != 0)
        text_add(out, SLICE(", shadow"));
    struct text own = {0};
    own_lines_name(&own, s, limit);
    if (own.len > 0) {
        text_add(out, SLICE("; "));
        text_add_html(out, slice_of(own.at, own.len));
    }
    out->is_broken |= own.is_broken;
    text_fini(&own);
}

/* What passes, and above it what does not; the dashed line is what is configured. */
static void spark(struct text *out, const struct snapshot_limit *limit, const struct track *track, size_t n)
{
    struct chart allowed = {.points = track->allowed, .n = n, .height = SPARK_HEIGHT};
    double over = chart_peak(track->over, n);
    allowed.most = chart_peak(track->allowed, n);
    allowed.most = over > allowed.most ? over : allowed.most;
    allowed.most = limit->per_s > allowed.most ? limit->per_s : allowed.most;
    struct chart refused = allowed;
    refused.points = track->over;
    text_add(out, SLICE("<div class=\"plot\"><svg class=\"chart spark\" viewBox=\"0 0 300 28\" "
                        "preserveAspectRatio=\"none\" aria-hidden=\"true\"><path class=\"rate\" d=\""));
    if (limit->per_s > 0)
        text_print(out, "M0 %.4gH300", chart_y(&allowed, limit->per_s));
    text_add(out, SLICE("\"/><path class=\"line\" d=\""));
    chart_line(out, &allowed);
    text_add(out, SLICE("\"/><path class=\"line refused\" d=\""));
    if (over > 0)
        chart_line(out, &refused);
    text_add(out, SLICE("\"/></svg></div>"));
}

static void use(struct text *out, const struct snapshot_limit *limit)
{
    text_add(out,
             SLICE("<svg class=\"meter\" viewBox=\"0 0 100 6\" preserveAspectRatio=\"none\" aria-hidden=\"true\">"));
    text_print(out, "<rect width=\"%.3g\" height=\"6\"/></svg><span class=\"sub\">", limit->used * 100);
    figure_percent(out, limit->used);
    text_add(out, SLICE(" <bdi>"));
    escaped(out, limit->fullest);
    text_add(out, SLICE("</bdi></span>"));
}

static void rate_of(struct text *out, const struct snapshot_limit *limit, double per_s)
{
    if (is_of_bytes(limit))
        figure_bytes(out, per_s);
    else
        figure_per_s(out, per_s);
}

/* "133/s of 60/s each" */
static void passing(struct text *out, const struct snapshot_limit *limit)
{
    rate_of(out, limit, limit->allowed_per_s);
    text_add(out, SLICE("<span class=\"sub\">"));
    if (limit->per_s > 0) {
        text_add(out, SLICE("of "));
        escaped(out, limit->amount);
        text_print(out, "%s", strcmp(limit->scope, "policy") == 0 ? "" : " each");
    }
    text_add(out, SLICE("</span>"));
}

/* "user:gold-1 100 % 312 of 340/s" */
static void holder_row(struct text *out, const struct holder *holder)
{
    text_add(out, SLICE("<li><bdi>"));
    text_add_html(out, holder->subject);
    text_add(out, SLICE("</bdi><span>"));
    if (holder->used >= 0)
        figure_percent(out, holder->used);
    text_print(out, "</span><span class=\"%s\">", holder->refused_per_s > 0 ? "hot" : "zero");
    figure_count(out, holder->refused_per_s);
    text_add(out, SLICE(" of "));
    figure_count(out, holder->commands_per_s > holder->refused_per_s ? holder->commands_per_s : holder->refused_per_s);
    text_add(out, SLICE("/s</span></li>"));
}

/* The name, and behind it who uses most of the limit. */
static void who(struct text *out, const struct snapshot *s, size_t i)
{
    struct holder holders[HOLDERS_MAX];
    const struct snapshot_limit *limit = &s->limits[i];
    size_t n = holders_of(s, i, holders);
    text_add(out, SLICE("<details><summary><span class=\"name\">"));
    escaped(out, limit->rule);
    text_add(out, SLICE("</span><span class=\"sub\">"));
    describe(out, s, limit);
    text_add(out, SLICE("</span></summary><p class=\"sub\">"));
    figure_count(out, limit->subjects);
    text_print(out, " subject%s in %s%s</p><ul class=\"holders\">", limit->subjects == 1 ? "" : "s", limit->policy,
               n > 0 ? "; of the heaviest, used and refused:" : "; nobody heavy uses it");
    for (size_t h = 0; h < n; h++)
        holder_row(out, &holders[h]);
    text_add(out, SLICE("</ul></details>"));
}

static void limit_row(struct text *out, const struct snapshot *s, size_t i)
{
    const struct snapshot_limit *limit = &s->limits[i];
    const char *state = limit_state_name(limit->state);
    text_print(out, "<tr class=\"%s\" data-key=\"", state);
    escaped(out, limit->rule);
    text_add(out, SLICE("\"><th scope=\"row\">"));
    who(out, s, i);
    text_print(out, "</th><td><span class=\"state\">%s</span></td><td class=\"n\" data-l=\"Passing\">", state);
    passing(out, limit);
    text_print(out, "</td><td class=\"n%s\" data-l=\"Over\">", limit->over_per_s > 0 ? " over" : " zero");
    rate_of(out, limit, limit->over_per_s);
    text_add(out, SLICE("</td><td>"));
    if (i < s->history->n_limits)
        spark(out, limit, &s->history->tracks[i], s->history->n);
    text_add(out, SLICE("</td><td class=\"use\">"));
    use(out, limit);
    text_add(out, SLICE("</td>"));
    count_cell(out, "Admitted", "", limit->admitted);
    count_cell(out, "Delayed", limit->state == LIMIT_DELAYING ? " warm" : "", limit->delayed);
    count_cell(out, "Refused", limit->state == LIMIT_REFUSING ? " hot" : "", limit->refused);
    count_cell(out, "Shadowed", limit->state == LIMIT_SHADOWING ? " warm" : "", limit->shadowed);
    text_add(out, SLICE("</tr>"));
}

/* What refuses comes first, then what delays ...; else in the order of the configuration. */
void page_limits(struct text *out, const struct snapshot *s)
{
    for (int state = LIMIT_STATES - 1; state >= 0; state--)
        for (size_t i = 0; i < s->n_limits && i < PAGE_LIMITS; i++)
            if (s->limits[i].state == (enum limit_state)state)
                limit_row(out, s, i);
    if (s->n_limits == 0)
        none(out, 10, "No limits are configured.");
}

static void named_row(struct text *out, const struct snapshot_named *named)
{
    text_add(out, SLICE("<tr><th scope=\"row\"><span class=\"name\">"));
    escaped(out, named->name);
    text_print(out, "</span><span class=\"sub\">%s ", named->algorithm);
    escaped(out, named->rates);
    text_print(out, "%s", named->zone[0] != '\0' ? ", " : "");
    escaped(out, named->zone);
    text_print(out, "%s", named->penalty[0] != '\0' ? ", penalty " : "");
    escaped(out, named->penalty);
    if (named->overrides > 0)
        text_print(out, ", %zu key%s with other rates", named->overrides, named->overrides == 1 ? "" : "s");
    text_print(out, "%s</span></th>", named->is_shadow ? ", shadow" : "");
    count_cell(out, "Passed", "", named->results[TALLY_PASSED]);
    count_cell(out, "Limited", "", named->results[TALLY_LIMITED]);
    count_cell(out, "Shadowed", "", named->results[TALLY_SHADOWED]);
    count_cell(out, "Errors", "", named->results[TALLY_ERROR]);
    text_add(out, SLICE("<td class=\"n\" data-l=\"p99\">"));
    figure_duration(out, (double)histo_quantile_ns(&named->times, 0.99) / (double)NS_PER_S);
    text_add(out, SLICE("</td></tr>"));
}

void page_named(struct text *out, const struct snapshot *s)
{
    for (size_t i = 0; i < s->n_named && i < PAGE_LIMITS; i++)
        named_row(out, &s->named[i]);
    if (s->n_named == 0)
        none(out, 6, "No limits are named.");
}

/* ---- subjects ---- */

void page_top(struct text *out, const struct snapshot *s, enum top_by by)
{
    const struct snapshot_top *top = &s->tops[by];
    size_t n = 0;
    for (; n < top->n && n < PAGE_TOP && top->rows[n].per_s > 0; n++) {
        const struct top_entry *row = &top->rows[n];
        text_add(out, SLICE("<tr><th scope=\"row\" class=\"who\"><bdi>"));
        text_add_html(out, slice_of(row->subject, row->subject_len));
        text_add(out, SLICE("</bdi></th><td>"));
        const char *refuser = by == TOP_REFUSED ? holders_refuser(s, row) : NULL;
        if (refuser != NULL)
            escaped(out, refuser);
        else
            text_add_html(out, slice_of(row->policy, row->policy_len));
        text_add(out, SLICE("</td><td class=\"n\">"));
        if (by == TOP_BYTES)
            figure_bytes(out, (double)row->per_s);
        else
            figure_count(out, row->per_s);
        text_add(out, SLICE("</td></tr>"));
    }
    if (n == 0)
        none(out, 3, "Nobody at the moment.");
}

/* ---- the rest ---- */

void page_classes(struct text *out, const struct snapshot *s)
{
    for (int kind = 0; kind < COMMAND_KINDS; kind++) {
        const _Atomic uint64_t *results = s->counts.commands[kind];
        text_print(out, "<tr><th scope=\"row\">%s</th>", command_kind_name((enum command_kind)kind));
        count_cell(out, "Forwarded", "", count_read(&results[RESULT_FORWARDED]));
        count_cell(out, "Refused", "", count_read(&results[RESULT_THROTTLED]));
        count_cell(out, "Delayed", "", count_read(&results[RESULT_DELAYED]));
        count_cell(out, "Shadowed", "", count_read(&results[RESULT_SHADOW]));
        count_cell(out, "By weir", "", count_read(&results[RESULT_LOCAL]));
        count_cell(out, "Errors", "", count_read(&results[RESULT_ERROR]));
        text_add(out, SLICE("</tr>"));
    }
}

uint64_t listener_turned_away(const struct listener_counts *counts)
{
    uint64_t sum = 0;
    for (int r = 0; r < REJECTED_COUNT; r++)
        sum += count_read(&counts->rejected[r]);
    return sum;
}

uint64_t listener_closed(const struct listener_counts *counts)
{
    uint64_t sum = 0;
    for (int r = 0; r < CLOSED_COUNT; r++)
        sum += count_read(&counts->closed[r]);
    return sum;
}

void page_listeners(struct text *out, const struct snapshot *s)
{
    for (size_t l = 0; l < s->n_listeners; l++) {
        const struct listener_counts *counts = &s->counts.listeners[l];
        text_add(out, SLICE("<tr><th scope=\"row\" class=\"who\">"));
        escaped(out, s->listeners[l].name);
        text_add(out, SLICE("</th>"));
        count_cell(out, "Now", "", s->listeners[l].open);
        count_cell(out, "Accepted", "", count_read(&counts->accepted));
        count_cell(out, "Turned away", "", listener_turned_away(counts));
        count_cell(out, "Closed", "", listener_closed(counts));
        text_add(out, SLICE("</tr>"));
    }
}

void page_events(struct text *out, const struct snapshot *s)
{
    for (size_t i = 0; i < s->n_events && i < PAGE_EVENTS; i++) {
        const struct journal_event *event = &s->events[i];
        text_add(out, SLICE("<tr><td>"));
        figure_time(out, event->unix_ms);
        text_add(out, SLICE("</td><td class=\"kind\">"));
        escaped(out, event->kind);
        text_add(out, SLICE("</td><td>"));
        escaped(out, event->text);
        if (event->count > 1) {
            text_add(out, SLICE("<span class=\"sub\">"));
            figure_count(out, event->count);
            text_add(out, SLICE(" times since "));
            figure_time(out, event->first_unix_ms);
            text_add(out, SLICE("</span>"));
        }
        text_add(out, SLICE("</td></tr>"));
    }
    if (s->n_events == 0)
        none(out, 3, "Nothing has happened yet.");
}
