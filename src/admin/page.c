#include "admin/page.h"

#include <string.h>

#include "admin/chart.h"
#include "admin/figures.h"
#include "admin/page_files.h"
#include "admin/page_rows.h"

#define HERO_HEIGHT 100.0
#define TILE_HEIGHT 40.0

/* What is being written. */
struct page {
    struct text *out;
    const struct snapshot *s;
    const char *nonce;
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
    escaped(p, p->s->config_path ? p->s->config_path : "none");
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

static void put_alerts(struct page *p)
{
    if (p->s->not_ready[0]) {
        text_add(p->out, SLICE("<li>Not ready: "));
        escaped(p, p->s->not_ready);
        text_add(p->out, SLICE("</li>"));
    }
    if (!p->s->is_reload_good) {
        text_add(p->out, SLICE("<li>The last reload failed, what ran before goes on: "));
        escaped(p, p->s->reload_error);
        text_add(p->out, SLICE("</li>"));
    }
}

/* ---- rates ---- */

static double now(const struct page *p, enum series series)
{
    return history_now(p->s->history, series);
}

static void put_commands(struct page *p)
{
    figure_rate(p->out, now(p, SERIES_COMMANDS));
}

static void put_refused(struct page *p)
{
    figure_rate(p->out, now(p, SERIES_REFUSED));
}

static void put_refused_share(struct page *p)
{
    double commands = now(p, SERIES_COMMANDS);
    text_add(p->out, SLICE("("));
    figure_percent(p->out, commands > 0 ? now(p, SERIES_REFUSED) / commands : 0);
    text_add(p->out, SLICE(")"));
}

static void put_delayed(struct page *p)
{
    figure_rate(p->out, now(p, SERIES_DELAYED));
}

static void put_shadowed(struct page *p)
{
    figure_rate(p->out, now(p, SERIES_SHADOWED));
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
}

static void put_connections_chart(struct page *p)
{
    put_chart(p, SERIES_CONNECTIONS, SERIES_CONNECTIONS, TILE_HEIGHT, "");
}

static void put_bytes_chart(struct page *p)
{
    put_chart(p, SERIES_BYTES_OUT, SERIES_BYTES_OUT, TILE_HEIGHT, "");
}

static void put_bytes_in(struct page *p)
{
    figure_bytes(p->out, now(p, SERIES_BYTES_IN));
}

static void put_bytes_out(struct page *p)
{
    figure_bytes(p->out, now(p, SERIES_BYTES_OUT));
}

/* ---- clients and upstream ---- */

static void put_connections(struct page *p)
{
    uint64_t open = 0;
    for (size_t l = 0; l < p->s->n_listeners; l++)
        open += p->s->listeners[l].open;
    figure_count(p->out, open);
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
    escaped(p, p->s->is_up ? "up" : "away");
}

static void put_upstream_class(struct page *p)
{
    escaped(p, p->s->is_up ? "up" : "down");
}

static void put_upstream_address(struct page *p)
{
    escaped(p, p->s->upstream);
}

static void put_upstream_errors(struct page *p)
{
    uint64_t sum = 0;
    for (int loss = 0; loss < LOSS_COUNT; loss++)
        sum += count_read(&p->s->lanes.lost[loss]);
    figure_count(p->out, sum);
}

static void put_lanes(struct page *p)
{
    uint64_t sum = 0;
    for (int home = HOME_NONE + 1; home < HOME_COUNT; home++)
        sum += count_read(&p->s->lanes.homes[home]);
    figure_count(p->out, sum);
}

static void put_lanes_mode(struct page *p)
{
    escaped(p, p->s->is_private ? "private to each client" : "shared by clients");
}

static void put_lane_states(struct page *p)
{
    for (int home = HOME_NONE + 1; home < HOME_COUNT; home++) {
        text_print(p->out, "<div><dt>%s</dt><dd>", lane_home_name((enum lane_home)home));
        figure_count(p->out, count_read(&p->s->lanes.homes[home]));
        text_add(p->out, SLICE("</dd></div>"));
    }
}

/* ---- tables ---- */

static void put_limits(struct page *p)
{
    page_limits(p->out, p->s);
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
} slots[] = {
    {"nonce", put_nonce},
    {"style", put_style},
    {"script", put_script},
    {"mode", put_mode},
    {"mode-class", put_mode},
    {"taken", put_taken},
    {"version", put_version},
    {"uptime", put_uptime},
    {"pid", put_pid},
    {"config", put_config},
    {"reload", put_reload},
    {"workers", put_workers},
    {"alerts", put_alerts},
    {"commands", put_commands},
    {"refused", put_refused},
    {"refused-share", put_refused_share},
    {"delayed", put_delayed},
    {"shadowed", put_shadowed},
    {"commands-peak", put_peak},
    {"commands-chart", put_commands_chart},
    {"connections-chart", put_connections_chart},
    {"bytes-chart", put_bytes_chart},
    {"bytes-in", put_bytes_in},
    {"bytes-out", put_bytes_out},
    {"connections", put_connections},
    {"max-clients", put_max_clients},
    {"turned-away", put_turned_away},
    {"upstream", put_upstream},
    {"upstream-class", put_upstream_class},
    {"upstream-address", put_upstream_address},
    {"upstream-errors", put_upstream_errors},
    {"lanes", put_lanes},
    {"lanes-mode", put_lanes_mode},
    {"lane-states", put_lane_states},
    {"limits", put_limits},
    {"more-limits", put_more_limits},
    {"top-commands", put_top_commands},
    {"top-refused", put_top_refused},
    {"top-bytes", put_top_bytes},
    {"classes", put_classes},
    {"listeners", put_listeners},
    {"events", put_events},
};

static void fill(struct page *page, struct slice name)
{
    for (size_t i = 0; i < sizeof slots / sizeof slots[0]; i++)
        if (slice_eq(name, slice_str(slots[i].name)))
            slots[i].put(page);
}

/* Splits `rest` at the mark; false: it is not there. */
static bool cut(struct slice *rest, const char *mark, struct slice *before)
{
    const char *at = memmem(rest->at, rest->len, mark, strlen(mark));
    if (!at)
        return false;
    *before = slice_of(rest->at, (size_t)(at - rest->at));
    size_t gone = before->len + strlen(mark);
    *rest = slice_of(rest->at + gone, rest->len - gone);
    return true;
}

void page_write(struct text *out, const struct snapshot *snapshot, const char *nonce)
{
    struct page page = {out, snapshot, nonce};
    struct slice rest = page_html();
    struct slice piece;
    struct slice name;
    while (cut(&rest, "{{", &piece) && cut(&rest, "}}", &name)) {
        text_add(out, piece);
        fill(&page, name);
    }
    text_add(out, rest);
}
