#include "admin/info.h"

#include <inttypes.h>

#include "admin/holders.h"
#include "admin/snapshot.h"
#include "base/clock.h"
#include "base/text.h"
#include "upstream/lane/lack.h"

#define INFO_TOP 10 /* subjects in a table (chosen) */

static void end_table(struct text *out, struct text *cells)
{
    if (cells->is_broken)
        out->is_broken = true;
    else
        columns_write(out, slice_of(cells->at, cells->len));
    text_fini(cells);
}

/* ---- limits ---- */

static const char *info_standing(const struct snapshot_limit *limit)
{
    if (limit->state == LIMIT_REFUSING)
        return limit->is_shadow ? "would refuse" : "refuses";
    if (limit->state == LIMIT_DELAYING)
        return limit->is_shadow ? "would delay" : "delays";
    return "-";
}

static void limit_rows(struct text *cells, const struct snapshot *s, bool is_active)
{
    for (size_t i = 0; i < s->n_limits; i++) {
        const struct snapshot_limit *limit = &s->limits[i];
        bool has_state = limit->state == LIMIT_REFUSING || limit->state == LIMIT_DELAYING;
        if (has_state == is_active)
            text_print(cells,
                       "%s\t%s\t%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                       "\t%" PRIu64 "\n",
                       limit->rule,
                       snapshot_limit_denies(limit) || limit->is_only_own ? "-" : limit->amount,
                       limit->is_shadow ? "shadow" : limit->action, limit->scope,
                       info_standing(limit), limit->admitted, limit->delayed, limit->refused,
                       limit->shadowed, limit->subjects);
    }
}

static void info_named(struct text *out, const struct snapshot *s)
{
    struct text cells = {0};
    text_print(&cells, "limit\talgorithm\trates\tpassed\tlimited\tshadowed\terrors\n");
    for (size_t i = 0; i < s->n_named; i++)
        text_print(&cells, "%s\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                   s->named[i].name, s->named[i].algorithm, s->named[i].rates,
                   s->named[i].results[NAMED_PASSED], s->named[i].results[NAMED_LIMITED],
                   s->named[i].results[NAMED_SHADOWED], s->named[i].results[NAMED_ERROR]);
    text_print(out, "\r\n");
    end_table(out, &cells);
}

static void put_end(struct text *out, uint64_t until_ns, uint64_t now_ns)
{
    if (until_ns == 0)
        text_add(out, SLICE("-"));
    else
        text_print(out, "%" PRIu64 " s", until_ns > now_ns ? (until_ns - now_ns) / NS_PER_S : 0);
}

/* Writes the lines of single subjects. */
static void own_lines(struct text *out, const struct snapshot *s)
{
    struct text cells = {0};
    text_print(&cells, "own limit\tsubject\trate\tover\tends in\trefused/s\n");
    for (size_t i = 0; i < s->n_owns; i++) {
        const struct snapshot_own *own = &s->owns[i];
        text_print(&cells, "%s\t%s\t%s\t%s\t", own->rule, own->subject, own->amount, own->action);
        put_end(&cells, own->until_ns, s->taken_ns);
        text_print(&cells, "\t%" PRIu64 "\n", own_lines_refused(s, own));
    }
    text_print(out, "\r\n");
    end_table(out, &cells);
    if (s->n_all_owns > s->n_owns)
        text_print(out, "and %zu more: LIMIT LIST\r\n", s->n_all_owns - s->n_owns);
}

/* Writes active limits first. */
static void limits(struct text *out, const struct snapshot *s)
{
    size_t n_refusing = 0;
    struct text cells = {0};
    for (size_t i = 0; i < s->n_limits; i++)
        n_refusing += s->limits[i].state == LIMIT_REFUSING;
    text_print(out, "# Limits: %zu of %zu %srefuse, mode = %s\r\n", n_refusing, s->n_limits,
               s->is_shadow ? "would " : "", s->is_shadow ? "shadow" : "enforce");
    if (s->blocks > 0)
        text_print(
            out, "# Blocked: %zu subject%s (LIMIT BLOCKS), %" PRIu64 " commands refused so far\r\n",
            s->blocks, s->blocks == 1 ? "" : "s", s->blocked_commands);
    text_print(&cells,
               "limit\trate\tover\tper\tnow\tadmitted\tdelayed\trefused\tshadowed\tsubjects\n");
    limit_rows(&cells, s, true);
    limit_rows(&cells, s, false);
    end_table(out, &cells);
    if (s->n_owns > 0)
        own_lines(out, s);
    if (s->n_named > 0)
        info_named(out, s);
}

/* ---- clients ---- */

static uint64_t info_sum(const _Atomic uint64_t *counts, int n)
{
    uint64_t total = 0;
    for (int i = 0; i < n; i++)
        total += count_read(&counts[i]);
    return total;
}

static void listeners(struct text *out, const struct snapshot *s)
{
    struct text cells = {0};
    text_print(&cells, "listener\tconnected\taccepted\tturned away\tclosed\n");
    for (size_t l = 0; l < s->n_listeners; l++) {
        const struct listener_counts *counts = &s->counts.listeners[l];
        text_print(&cells, "%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n",
                   s->listeners[l].name, s->listeners[l].open, count_read(&counts->accepted),
                   info_sum(counts->rejected, REJECTED_COUNT),
                   info_sum(counts->closed, CLOSED_COUNT));
    }
    end_table(out, &cells);
}

static void subjects(struct text *out, const struct snapshot *s, enum top_by by)
{
    const struct snapshot_top *top = &s->tops[by];
    struct text cells = {0};
    text_print(&cells, "subject\tpolicy\t%s/s\tover\tshare ms/s\trefused by\n", top_name(by));
    for (size_t i = 0; i < top->n && i < INFO_TOP; i++) {
        const struct top_entry *row = &top->rows[i];
        const char *refuser = holders_refuser(s, row);
        text_print(&cells, "%.*s\t%.*s\t%" PRIu64 "\t%" PRIu64 " s\t%" PRIu64 "\t%s\n",
                   (int)row->subject_len, row->subject,
                   row->policy_len > 0 ? (int)row->policy_len : 1,
                   row->policy_len > 0 ? row->policy : "-", row->per_s,
                   (row->over_ns + NS_PER_S / 2) / NS_PER_S, row->share_us_per_s / 1000,
                   refuser != NULL ? refuser : "-");
    }
    text_print(out, "\r\n");
    if (top->n > 0)
        end_table(out, &cells);
    else
        text_print(out, "%s: no subject at the moment\r\n", top_name(by));
    if (top->n == 0)
        text_fini(&cells);
}

static void clients(struct text *out, const struct snapshot *s)
{
    text_print(out, "# Clients: %" PRIu64 " of at most %u\r\n", snapshot_clients(s),
               s->max_clients);
    listeners(out, s);
    subjects(out, s, TOP_COMMANDS);
    subjects(out, s, TOP_REFUSED);
}

/* ---- upstream ---- */

static void duration(struct text *cells, const struct histo *histo, double quantile)
{
    uint64_t us = histo_quantile_ns(histo, quantile) / NS_PER_US;
    text_print(cells, "\t%" PRIu64 ".%03" PRIu64 " ms", us / 1000, us % 1000);
}

static void times(struct text *out, const struct times *times)
{
    const struct {
        const char *what;
        const struct histo *histo;
    } rows[] = {
        {"commands, as clients see them", &times->request},
        {"of which in Redis", &times->upstream},
        {"of which in weir", &times->overhead},
        {"delayed by limits", &times->delay},
        {"waiting for a fair share", &times->share},
    };
    struct text cells = {0};
    text_print(&cells, "time since the start\tcount\tp50\tp99\n");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        text_print(&cells, "%s\t%" PRIu64, rows[i].what, histo_count(rows[i].histo));
        duration(&cells, rows[i].histo, 0.5);
        duration(&cells, rows[i].histo, 0.99);
        text_print(&cells, "\n");
    }
    text_print(out, "\r\n");
    end_table(out, &cells);
}

static void lacks(struct text *out, const struct snapshot *s, const struct snapshot_node *node)
{
    for (int lack = 0; lack < LACK_COUNT; lack++)
        if ((node->lacks >> lack & 1) != 0)
            text_print(out, "%s %s; %s\r\n", node->address, lack_what((enum lack)lack),
                       lack_remedy((enum lack)lack, s->is_cluster));
}

/* Writes the address in use, and the error of each other dialled address. */
static void addresses(struct text *out, const struct snapshot_node *node)
{
    if (node->in_use[0] != '\0' && strcmp(node->in_use, node->address) != 0)
        text_print(out, "%s is at %s\r\n", node->address, node->in_use);
    for (unsigned i = 0; i < node->n_tries; i++)
        if (node->tries[i].why[0] != '\0')
            text_print(out, "%s: %s\r\n", node->tries[i].address, node->tries[i].why);
}

static void upstream(struct text *out, const struct snapshot *s)
{
    struct text cells = {0};
    text_print(out, "# Upstream: %s%s%s\r\n", node_state_name(s->health.state),
               s->not_ready[0] ? "; not ready: " : "", s->not_ready);
    text_print(&cells, "upstream\tstate\tin flight\toldest\tshared\tprivate\tidle\topened\tlost\n");
    for (size_t i = 0; i < s->n_nodes; i++) {
        const struct snapshot_node *node = &s->nodes[i];
        const struct lane_counts *lanes = &node->lanes;
        text_print(&cells,
                   "%s\t%s\t%" PRIu64 "\t%" PRIu64 " ms\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
                   "\t%" PRIu64 "\t%" PRIu64 "\n",
                   node->address, node_state_name(node->health.state),
                   count_read(&lanes->in_flight), node->health.oldest_ns / NS_PER_MS,
                   count_read(&lanes->lists[LIST_SHARED]) +
                       count_read(&lanes->lists[LIST_RETIRED]) +
                       count_read(&lanes->lists[LIST_SPARE]),
                   count_read(&lanes->lists[LIST_PRIVATE]), count_read(&lanes->lists[LIST_IDLE]),
                   count_read(&lanes->opened), info_sum(lanes->lost, LOSS_COUNT));
    }
    end_table(out, &cells);
    for (size_t i = 0; i < s->n_nodes; i++) {
        addresses(out, &s->nodes[i]);
        lacks(out, s, &s->nodes[i]);
    }
    times(out, &s->counts.times);
}

/* ---- the table ---- */

void info_write(struct text *out, const struct snapshot *snapshot, struct slice section)
{
    static const struct {
        const char *name;
        void (*write)(struct text *out, const struct snapshot *s);
    } sections[] = {{"limits", limits}, {"clients", clients}, {"upstream", upstream}};
    for (size_t i = 0; i < sizeof sections / sizeof sections[0]; i++) {
        if (section.len > 0 && !slice_eq_nocase(section, slice_str(sections[i].name)))
            continue;
        if (out->len > 0)
            text_print(out, "\r\n");
        sections[i].write(out, snapshot);
    }
}
