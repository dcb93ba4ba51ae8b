#include "admin/page.h"

#include <string.h>

#include "admin/chart.h"
#include "admin/figures.h"
#include "admin/findings.h"
#include "admin/page_files.h"
#include "admin/page_rows.h"
#include "base/clock.h"

#define HERO_HEIGHT 100.0
#define TILE_HEIGHT 40.0
#define PAGE_OLD_NS NS_PER_S /* a command that waits so long for its answer is worth a look */

/* What is being written. */
struct page {
    struct text *out;
    const struct snapshot *s;
    const char *nonce;
    struct findings findings;
};

static void escaped(struct page *p, const char *text)
{
    text_add_html(p->out, slice_str(text));
}

/* ---- the document ---- */

static void put_nonce(struct page *p)
{
    escaped(p, p->nonce);
}

static void put_style(struct page *p)
{
    text_add(p->out, page_css());
}

static void put_script(struct page *p)
{
    text_add(p->out, page_js());
}

/* ---- the header ---- */

static const char *mode(const struct snapshot *s)
{
    return s->is_draining ? "draining" : s->is_shadow ? "shadow" : "enforce";
}

static void put_mode(struct page *p)
{
    escaped(p, mode(p->s));
}

static void put_taken(struct page *p)
{
    figure_time(p->out, p->s->unix_ms);
}

static void put_version(struct page *p)
{
    escaped(p, p->s->version);
}

static void put_uptime(struct page *p)
{
    figure_span(p->out, (p->s->unix_ms - p->s->started_unix_ms) / 1000);
}

static void put_pid(struct page *p)
{
    text_print(p->out, "%d", p->s->pid);
}

static void put_config(struct page *p)
{
    escaped(p, p->s->config_path != NULL ? p->s->config_path : "none");
}

static void put_reload(struct page *p)
{
    if (!p->s->is_reload_good) {
        text_add(p->out, SLICE("failed"));
        return;
    }
    text_print(p->out, p->s->reloads > 0 ? "OK, " : "none since ");
    figure_time(p->out, p->s->reloaded_unix_ms);
}

static void put_workers(struct page *p)
{
    text_print(p->out, "%u", p->s->workers);
}

static void put_subjects(struct page *p)
{
    figure_count(p->out, p->s->subjects + p->s->key_subjects);
}

static void put_name(struct page *p)
{
    escaped(p, p->s->name);
}

/* "3 of 21 limits refusing - orders-eu": what a tab in the background shows. */
static void put_title(struct page *p)
{
    const struct finding *first = &p->findings.rows[0];
    if (first->level == FINDING_BAD) {
        text_add_html(p->out, slice_of(first->title.at, first->title.len));
        text_add(p->out, SLICE(" - "));
    }
    escaped(p, p->s->name[0] != '\0' ? p->s->name : "weir");
}

static void put_findings(struct page *p)
{
    for (size_t i = 0; i < p->findings.n; i++) {
        const struct finding *finding = &p->findings.rows[i];
        text_print(p->out, "<li class=\"%s\"><a href=\"#%s\">", finding_level_name(finding->level), finding->at);
        text_add_html(p->out, slice_of(finding->title.at, finding->title.len));
        text_add(p->out, SLICE("</a> <span>"));
        text_add_html(p->out, slice_of(finding->more.at, finding->more.len));
        text_add(p->out, SLICE("</span></li>"));
    }
}

/* ---- rates ---- */

static double now(const struct page *p, enum series series)
{
    return history_now(p->s->history, series);
}

static void put_refused_share(struct page *p)
{
    double commands = now(p, SERIES_COMMANDS);
    text_add(p->out, SLICE("("));
    figure_percent(p->out, commands > 0 ? now(p, SERIES_REFUSED) / commands : 0);
    text_add(p->out, SLICE(")"));
}

static double peak(const struct page *p, enum series series)
{
    return chart_peak(p->s->history->points[series], p->s->history->n);
}

static void put_peak(struct page *p)
{
    figure_per_s(p->out, peak(p, SERIES_COMMANDS));
}

/* An area with its line; nothing where there was nothing. */
static void put_chart(struct page *p, enum series series, enum series scale, double height, const char *class)
{
    const struct history *history = p->s->history;
    const struct chart chart = {history->points[series], history->n, peak(p, scale), height};
    bool is_empty = peak(p, series) <= 0;
    text_print(p->out, "<path class=\"area%s\" d=\"", class);
    if (!is_empty)
        chart_area(p->out, &chart);
    text_print(p->out, "\"/><path class=\"line%s\" d=\"", class);
    if (!is_empty)
        chart_line(p->out, &chart);
    text_add(p->out, SLICE("\"/>"));
}

static void put_commands_chart(struct page *p)
{
    put_chart(p, SERIES_COMMANDS, SERIES_COMMANDS, HERO_HEIGHT, "");
    put_chart(p, SERIES_REFUSED, SERIES_COMMANDS, HERO_HEIGHT, " refused");
    put_chart(p, SERIES_REDIS_ERRORS, SERIES_COMMANDS, HERO_HEIGHT, " redis");
    put_chart(p, SERIES_ERRORS, SERIES_COMMANDS, HERO_HEIGHT, " errors");
}

/* ---- clients and upstream ---- */

static void put_connections(struct page *p)
{
    figure_count(p->out, snapshot_clients(p->s));
}

static void put_max_clients(struct page *p)
{
    figure_count(p->out, p->s->max_clients);
}

static void put_turned_away(struct page *p)
{
    uint64_t sum = 0;
    for (size_t l = 0; l < p->s->n_listeners; l++)
        sum += listener_turned_away(&p->s->counts.listeners[l]);
    figure_count(p->out, sum);
}

static void put_upstream(struct page *p)
{
    escaped(p, page_node_state(p->s->health.state));
}

static void put_upstream_class(struct page *p)
{
    bool is_well = p->s->health.state == NODE_UP;
    escaped(p, is_well ? "is-up" : node_state_is_up(p->s->health.state) ? "is-slow" : "is-down");
}

static void put_upstream_address(struct page *p)
{
    const struct snapshot_node *node = snapshot_home(p->s);
    escaped(p, p->s->upstream);
    if (node == NULL)
        return;
    if (node->in_use[0] != '\0' && strcmp(node->in_use, node->address) != 0) {
        escaped(p, ", ");
        escaped(p, node->in_use);
    }
    for (unsigned i = 0; i < node->n_tries; i++)
        if (node->tries[i].why[0] != '\0') {
            escaped(p, "; ");
            escaped(p, node->tries[i].address);
            escaped(p, ": ");
            escaped(p, node->tries[i].why);
        }
}

static void put_upstream_errors(struct page *p)
{
    figure_count(p->out, lanes_lost(&p->s->lanes));
}

static void put_oldest(struct page *p)
{
    figure_duration(p->out, (double)p->s->health.oldest_ns / (double)NS_PER_S);
}

static void put_oldest_class(struct page *p)
{
    escaped(p, p->s->health.oldest_ns >= PAGE_OLD_NS ? "hot" : "");
}

static void put_lanes(struct page *p)
{
    figure_count(p->out, lanes_there(&p->s->lanes));
}

static void put_lanes_mode(struct page *p)
{
    escaped(p, p->s->is_private ? "private to each client" : "shared by clients");
}

static void put_lane_states(struct page *p)
{
    for (int in = LIST_NONE + 1; in < LIST_COUNT; in++) {
        text_print(p->out, "<div><dt>%s</dt><dd>", lane_list_name((enum lane_list)in));
        figure_count(p->out, count_read(&p->s->lanes.lists[in]));
        text_add(p->out, SLICE("</dd></div>"));
    }
}

/* ---- tables ---- */

/* One node is what stands above already. */
static void put_nodes_hidden(struct page *p)
{
    escaped(p, p->s->n_nodes > 1 ? "" : "hidden");
}

static void put_nodes(struct page *p)
{
    page_nodes(p->out, p->s);
}

static void put_limits(struct page *p)
{
    page_limits(p->out, p->s);
}

static void put_named_hidden(struct page *p)
{
    escaped(p, p->s->n_named > 0 ? "" : "hidden");
}

static void put_named(struct page *p)
{
    page_named(p->out, p->s);
}

static void put_more_limits(struct page *p)
{
    if (p->s->n_limits > PAGE_LIMITS)
        text_print(p->out, " %zu more limits are in the JSON.", p->s->n_limits - PAGE_LIMITS);
}

static void put_top_commands(struct page *p)
{
    page_top(p->out, p->s, TOP_COMMANDS);
}

static void put_top_refused(struct page *p)
{
    page_top(p->out, p->s, TOP_REFUSED);
}

static void put_top_bytes(struct page *p)
{
    page_top(p->out, p->s, TOP_BYTES);
}

static void put_classes(struct page *p)
{
    page_classes(p->out, p->s);
}

static void put_listeners(struct page *p)
{
    page_listeners(p->out, p->s);
}

static void put_events(struct page *p)
{
    page_events(p->out, p->s);
}

/* ---- the template ---- */

static const struct slot {
    const char *name;
    void (*put)(struct page *page);
    void (*figure)(struct text *out, double value); /* or: how to write the newest value of a series */
    enum series series;                             /* with neither: its chart */
} slots[] = {
    {"nonce", .put = put_nonce},
    {"style", .put = put_style},
    {"script", .put = put_script},
    {"mode", .put = put_mode},
    {"mode-class", .put = put_mode},
    {"taken", .put = put_taken},
    {"version", .put = put_version},
    {"uptime", .put = put_uptime},
    {"pid", .put = put_pid},
    {"config", .put = put_config},
    {"reload", .put = put_reload},
    {"workers", .put = put_workers},
    {"subjects", .put = put_subjects},
    {"name", .put = put_name},
    {"title", .put = put_title},
    {"findings", .put = put_findings},
    {"commands", .figure = figure_rate, .series = SERIES_COMMANDS},
    {"refused", .figure = figure_rate, .series = SERIES_REFUSED},
    {"refused-share", .put = put_refused_share},
    {"delayed", .figure = figure_rate, .series = SERIES_DELAYED},
    {"shadowed", .figure = figure_rate, .series = SERIES_SHADOWED},
    {"errors", .figure = figure_rate, .series = SERIES_ERRORS},
    {"redis-errors", .figure = figure_rate, .series = SERIES_REDIS_ERRORS},
    {"commands-peak", .put = put_peak},
    {"commands-chart", .put = put_commands_chart},
    {"connections-chart", .series = SERIES_CONNECTIONS},
    {"in-flight-chart", .series = SERIES_IN_FLIGHT},
    {"latency-chart", .series = SERIES_LATENCY_P99},
    {"upstream-chart", .series = SERIES_UPSTREAM_P99},
    {"delay-chart", .series = SERIES_DELAY_P99},
    {"overhead-chart", .series = SERIES_OVERHEAD_P99},
    {"upstream-p50", .figure = figure_duration, .series = SERIES_UPSTREAM_P50},
    {"upstream-p99", .figure = figure_duration, .series = SERIES_UPSTREAM_P99},
    {"delay-p99", .figure = figure_duration, .series = SERIES_DELAY_P99},
    {"latency-p50", .figure = figure_duration, .series = SERIES_LATENCY_P50},
    {"latency-p99", .figure = figure_duration, .series = SERIES_LATENCY_P99},
    {"overhead-p50", .figure = figure_duration, .series = SERIES_OVERHEAD_P50},
    {"overhead-p99", .figure = figure_duration, .series = SERIES_OVERHEAD_P99},
    {"wait-p99", .figure = figure_duration, .series = SERIES_WAIT_P99},
    {"turn-p99", .figure = figure_duration, .series = SERIES_TURN_P99},
    {"bytes-in", .figure = figure_bytes, .series = SERIES_BYTES_IN},
    {"bytes-out", .figure = figure_bytes, .series = SERIES_BYTES_OUT},
    {"connections", .put = put_connections},
    {"max-clients", .put = put_max_clients},
    {"turned-away", .put = put_turned_away},
    {"upstream", .put = put_upstream},
    {"upstream-class", .put = put_upstream_class},
    {"upstream-address", .put = put_upstream_address},
    {"upstream-errors", .put = put_upstream_errors},
    {"in-flight", .figure = figure_whole, .series = SERIES_IN_FLIGHT},
    {"oldest", .put = put_oldest},
    {"oldest-class", .put = put_oldest_class},
    {"lanes", .put = put_lanes},
    {"lanes-mode", .put = put_lanes_mode},
    {"lane-states", .put = put_lane_states},
    {"nodes-hidden", .put = put_nodes_hidden},
    {"nodes", .put = put_nodes},
    {"limits", .put = put_limits},
    {"named-hidden", .put = put_named_hidden},
    {"named", .put = put_named},
    {"more-limits", .put = put_more_limits},
    {"top-commands", .put = put_top_commands},
    {"top-refused", .put = put_top_refused},
    {"top-bytes", .put = put_top_bytes},
    {"classes", .put = put_classes},
    {"listeners", .put = put_listeners},
    {"events", .put = put_events},
};

static void fill(struct page *page, struct slice name)
{
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++) {
        const struct slot *slot = &slots[i];
        if (!slice_eq(name, slice_str(slot->name)))
            continue;
        if (slot->put != NULL)
            slot->put(page);
        else if (slot->figure != NULL)
            slot->figure(page->out, now(page, slot->series));
        else
            put_chart(page, slot->series, slot->series, TILE_HEIGHT, "");
    }
}

/* Splits `rest` at the mark; false: it is not there. */
static bool cut(struct slice *rest, const char *mark, struct slice *before)
{
    const char *at = memmem(rest->at, rest->len, mark, strlen(mark));
    if (at == NULL)
        return false;
    *before = slice_of(rest->at, (size_t)(at - rest->at));
    size_t gone = before->len + strlen(mark);
    *rest = slice_of(rest->at + gone, rest->len - gone);
    return true;
}

void page_write(struct text *out, const struct snapshot *snapshot, const char *nonce)
{
    struct page page = {.out = out, .s = snapshot, .nonce = nonce};
    findings_make(&page.findings, snapshot);
    struct slice rest = page_html();
    struct slice piece;
    struct slice name;
    while (cut(&rest, "{{", &piece) && cut(&rest, "}}", &name)) {
        text_add(out, piece);
        fill(&page, name);
    }
    text_add(out, rest);
    findings_free(&page.findings);
}
