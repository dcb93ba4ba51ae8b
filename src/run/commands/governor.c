#include "run/commands/governor.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/commands/draft.h"
#include "run/commands/handover.h"
#include "run/config/log_event.h"
#include "run/commands/order_block.h"
#include "run/commands/order_key.h"
#include "run/commands/order_line.h"
#include "run/commands/running.h"

struct governor {
    struct running running;
    struct journal *journal;
    size_t bytes; /* of memory that a configuration has taken so far, at most */
    struct reloads reloads;
};

/* ---- memory ---- */

#define SPARE_BYTES (1 << 20)      /* the file may have grown since */
#define BYTES_PER_BYTE 64          /* of the file: a line of few words becomes a limit with all that it needs */
#define BYTES_PER_POLICY (1 << 15) /* a variant of it, for one subject or for those that are blocked */

/*
 * Reading and building a configuration uses base/mem.h, which never fails: so check before that there is memory for all
 * of it. False: there is not, and nothing may change.
 */
static bool has_memory(const struct governor *g, size_t n_orders)
{
    return mem_would_give(2 * g->bytes + SPARE_BYTES + BYTES_PER_BYTE * config_file_bytes(&g->running.loaded) +
                          BYTES_PER_POLICY * n_orders);
}

/* The same for n orders of a kind. Those about one subject or key copy little of what there is, unless it is the first block. */
static bool has_memory_for(const struct governor *g, enum order_kind kind, size_t n)
{
    switch (kind) {
    case ORDER_CLIENTS:
    case ORDER_KICK:
        return true;
    case ORDER_BLOCK:
    case ORDER_UNBLOCK:
    case ORDER_SET_KEY:
    case ORDER_UNSET_KEY:
        return mem_would_give(SPARE_BYTES + BYTES_PER_POLICY * policies_count(g->running.live.rules->policies));
    default:
        return has_memory(g, n);
    }
}

static void note_memory(struct governor *g, size_t given_before)
{
    size_t bytes = mem_given() - given_before;
    g->bytes = bytes > g->bytes ? bytes : g->bytes;
}

/* ---- reloads ---- */

static void note_starved_reload(struct governor *g)
{
    static const char why[] = "out of memory";
    g->reloads.is_last_bad = true;
    g->reloads.bad++;
    memcpy(g->reloads.last_error, why, sizeof why);
    log_event(g->journal, LOG_ERROR, "reload", "configuration not reloaded: %s: what ran before goes on", why);
}

static char *read_again(struct governor *g, struct order *order)
{
    char *why = running_read_again(&g->running, &order->text);
    g->reloads.is_last_bad = why != NULL;
    g->reloads.bad += why != NULL;
    if (why == NULL) {
        g->reloads.good++;
        g->reloads.last_good_unix_ms = clock_unix_ms();
        return NULL;
    }
    char *error = order_error("configuration not reloaded: %s", why);
    snprintf(g->reloads.last_error, sizeof g->reloads.last_error, "%s", why);
    log_event(g->journal, LOG_ERROR, "reload", "%s: what ran before goes on", error + 4);
    free(why);
    return error;
}

static char *reload(struct governor *g, struct order *order)
{
    char *error = read_again(g, order);
    if (error == NULL)
        log_order(g->journal, order, "reload", "configuration reloaded from %s", g->running.path);
    return error;
}

const char *governor_path(const struct governor *g)
{
    return g->running.path;
}

const struct reloads *governor_reloads(const struct governor *g)
{
    return &g->reloads;
}

bool governor_reload(struct governor *g)
{
    struct order order = {.kind = ORDER_RELOAD};
    size_t given = mem_given();
    bool has_room = has_memory(g, 1);
    if (has_room)
        order.error = read_again(g, &order);
    else
        note_starved_reload(g);
    note_memory(g, given);
    bool is_good = has_room && order.error == NULL;
    free(order.error);
    free(order.text);
    return is_good;
}

void governor_tell_reloaded(const struct governor *g)
{
    log_event(g->journal, LOG_INFO, "reload", "configuration reloaded from %s", g->running.path);
}

/* ---- orders that change the configuration ---- */

/* Change a draft by all the orders, and run it, or say why not (heap). Orders that cannot be have errors of their own. */
static char *change_all(struct governor *g, struct order *const *orders, size_t n, char **told)
{
    struct draft draft = running_draft(&g->running);
    bool has_changed = false;
    for (size_t i = 0; i < n; i++) {
        orders[i]->error = draft_change(&draft, orders[i], &g->running.live, &told[i]);
        has_changed |= orders[i]->error == NULL;
    }
    if (has_changed)
        return running_use(&g->running, &draft);
    draft_fini(&draft);
    return NULL;
}

static void tell_changes(struct governor *g, struct order *const *orders, size_t n, char *const *told)
{
    static const char *const words[] = {
        [ORDER_SET] = "set", [ORDER_SET_LIMIT] = "set", [ORDER_UNSET] = "unset", [ORDER_MODE] = "mode"};
    for (size_t i = 0; i < n; i++)
        if (orders[i]->error == NULL)
            log_order(g->journal, orders[i], words[orders[i]->kind], "%s", told[i]);
}

/* All in one step; where that fails each half by itself, until the one that is wrong stands alone. */
static void change(struct governor *g, struct order *const *orders, size_t n)
{
    char **told = mem_zalloc(n, sizeof *told);
    char *why = change_all(g, orders, n, told);
    if (why == NULL)
        tell_changes(g, orders, n, told);
    for (size_t i = 0; i < n; i++)
        free(told[i]);
    free(told);
    if (why != NULL && n == 1) {
        orders[0]->error = order_error("%s", why);
    } else if (why != NULL) {
        for (size_t i = 0; i < n; i++)
            free(orders[i]->error);
        change(g, orders, n / 2);
        change(g, orders + n / 2, n - n / 2);
    }
    free(why);
}

/* ---- orders about single keys and subjects ---- */

static char *set_key(struct governor *g, struct order *order)
{
    struct named *next;
    char *error = order_key_set(order, g->running.live.rules->named, clock_ns(), g->journal, &next);
    if (error == NULL)
        live_rules_set_named(&g->running.live, next);
    return error;
}

static char *unset_key(struct governor *g, struct order *order)
{
    struct named *next;
    char *error = order_key_unset(order, g->running.live.rules->named, clock_ns(), g->journal, &next);
    if (error == NULL)
        live_rules_set_named(&g->running.live, next);
    return error;
}

static char *block(struct governor *g, struct order *order)
{
    return order_block(order, &g->running.live, clock_ns());
}

/* The workers have done it. */
static char *note_round(struct governor *g, struct order *order)
{
    if (order->kind == ORDER_KICK)
        log_order(g->journal, order, "kick", "%zu connection%s of %s closed", order->n_rows,
                  order->n_rows == 1 ? "" : "s", order->key);
    return NULL;
}

/* ---- what ends ---- */

uint64_t governor_next_end(const struct governor *g)
{
    uint64_t blocks_ns = shared_set_next_end(g->running.live.blocks), lines_ns = set_lines_next_end(&g->running.lines);
    return blocks_ns == 0 || (lines_ns > 0 && lines_ns < blocks_ns) ? lines_ns : blocks_ns;
}

static void end_lines(struct governor *g, uint64_t now_ns)
{
    uint64_t next_ns = set_lines_next_end(&g->running.lines);
    if (next_ns == 0 || next_ns > now_ns)
        return;
    struct draft draft = running_draft(&g->running);
    set_lines_end(&draft.lines, now_ns, g->journal);
    free(running_use(&g->running, &draft));
}

void governor_end(struct governor *g, uint64_t now_ns)
{
    if (!has_memory(g, 0))
        return;
    order_blocks_end(&g->running.live, now_ns);
    end_lines(g, now_ns);
}

size_t governor_blocks(const struct governor *g, bool *has_been, uint16_t *id)
{
    *has_been = g->running.live.has_block;
    *id = g->running.live.block.id;
    return shared_set_count(g->running.live.blocks);
}

bool governor_set_password(struct governor *g, char *password)
{
    if (!has_memory_for(g, ORDER_SET_KEY, 1))
        return false;
    live_rules_set_password(&g->running.live, password);
    return true;
}

char *governor_hand_over(const struct governor *g)
{
    if (!has_memory(g, 0))
        return NULL;
    return handover_write(&(struct handover){.running = &g->running.file,
                                             .loaded = &g->running.loaded,
                                             .lines = &g->running.lines,
                                             .named = g->running.live.rules->named,
                                             .blocks = g->running.live.blocks});
}

static char *compare(struct governor *g, struct order *order)
{
    struct differences differences;
    if (g->running.path == NULL)
        return order_error("weir was started without a file (-c FILE): there is nothing to compare with");
    char *why = running_compare(&g->running, &differences);
    if (why == NULL) {
        order->differences = differences.at;
        order->n_differences = differences.count;
        return NULL;
    }
    char *error = order_error("the file cannot be compared: %s", why);
    free(why);
    return error;
}

/* ---- orders ---- */

static char *(*const kinds[])(struct governor *g, struct order *order) = {
    [ORDER_RELOAD] = reload, [ORDER_SET_KEY] = set_key, [ORDER_UNSET_KEY] = unset_key, [ORDER_DIFF] = compare,
    [ORDER_BLOCK] = block,   [ORDER_UNBLOCK] = block,   [ORDER_CLIENTS] = note_round,  [ORDER_KICK] = note_round,
};

/* An order that draft_is_for does not take has a row. */
static char *run_kind(struct governor *g, struct order *order)
{
    assert(order->kind < sizeof kinds / sizeof kinds[0] && kinds[order->kind] != NULL);
    return kinds[order->kind](g, order);
}

static void note_starved(struct governor *g, const struct order *order)
{
    if (order->kind == ORDER_RELOAD)
        note_starved_reload(g);
    else
        log_at(LOG_SITE_MEMORY, LOG_WARN, "an operator's order is not carried out: out of memory");
}

/* One order, or n of those that draft_is_for. */
static void carry_out(struct governor *g, struct order *const *orders, size_t n)
{
    size_t given = mem_given();
    bool is_starved = !has_memory_for(g, orders[0]->kind, n);
    for (size_t i = 0; i < n; i++)
        orders[i]->is_starved = is_starved;
    if (is_starved)
        note_starved(g, orders[0]);
    else if (draft_is_for(orders[0]))
        change(g, orders, n);
    else
        orders[0]->error = run_kind(g, orders[0]);
    note_memory(g, given);
}

void governor_carry_out(struct governor *g, struct order *order)
{
    carry_out(g, &order, 1);
}

void governor_carry_out_all(struct governor *g, struct order *const *orders, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; draft_is_for(orders[i]) && end < n && draft_is_for(orders[end]);)
            end++;
        carry_out(g, orders + i, end - i);
    }
}

/* ---- its life ---- */

struct governor *governor_new(const struct config *config, const struct config_file *file,
                              struct command_table *builtin, struct journal *journal)
{
    struct governor *g = mem_zalloc(1, sizeof *g);
    g->bytes = mem_given(); /* the file has been read, and little else been done */
    g->journal = journal;
    running_init(&g->running, config, file, builtin, journal);
    return g;
}

struct record *governor_unlimited(const struct governor *g)
{
    return g->running.live.unlimited;
}

void governor_free(struct governor *g)
{
    running_fini(&g->running);
    free(g);
}

void governor_on_table(struct governor *g, struct command_table *commands)
{
    if (!has_memory(g, 0)) {
        log_line(LOG_WARN, "out of memory: the upstream's commands stay known as they were");
        command_table_put(commands);
        return;
    }
    live_rules_rebind(&g->running.live, commands);
}

void governor_watch(struct governor *g, void (*on_change)(void *arg), void *arg)
{
    g->running.live.on_change = on_change;
    g->running.live.arg = arg;
}

void governor_settle(struct governor *g, struct subjects *const tables[2])
{
    live_rules_settle(&g->running.live, tables);
}

struct command_table *governor_commands(const struct governor *g)
{
    return g->running.live.commands;
}

struct rules *governor_rules(const struct governor *g)
{
    return g->running.live.rules;
}
