/*
 * Two configuration files are kept in memory: `loaded`, as it was read last, and `running`, with what LIMIT SET changed
 * since. In both, settings that need a restart have the values of the start. So the difference of the two is what was
 * only SET, and the difference of `running` and the file on disk is what LIMIT DIFF shows.
 */
#include "run/governor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/split.h"
#include "run/config_build.h"
#include "run/config_diff.h"
#include "run/config_edit.h"
#include "run/handover.h"
#include "run/live_rules.h"
#include "run/log_event.h"
#include "run/order_block.h"
#include "run/order_check.h"
#include "run/order_key.h"
#include "run/order_line.h"
#include "run/order_lines.h"
#include "run/set_lines.h"

struct governor {
    const char *path; /* NULL: no file */
    struct config_file loaded;
    struct config_file running;
    struct command_table *builtin;
    struct set_lines lines; /* over what runs */
    struct live_rules live;
    struct journal *journal;
    size_t bytes; /* of memory that a configuration has taken so far, at most */
    struct reloads reloads;
};

static char *copy_text(const char *text)
{
    return mem_strndup(text, strlen(text));
}

/* ---- memory ---- */

#define SPARE_BYTES (1 << 20) /* the file may have grown since */
#define BYTES_PER_BYTE 64     /* of the file: a line of few words becomes a limit with all that it needs */

/*
 * Reading and building a configuration uses base/mem.h, which never fails: so check before that there is memory for all
 * of it. False: there is not, and nothing may change.
 */
static bool has_memory(const struct governor *g)
{
    return mem_would_give(2 * g->bytes + SPARE_BYTES + BYTES_PER_BYTE * config_file_bytes(&g->loaded));
}

static void note_memory(struct governor *g, size_t given_before)
{
    size_t bytes = mem_given() - given_before;
    g->bytes = bytes > g->bytes ? bytes : g->bytes;
}

/* ---- errors ---- */

/* Collects what building a configuration reports; the client gets only the first error. */
struct complaints {
    bool is_logged;
    char *first;
};

static void on_complaint(void *arg, bool is_error, const char *line)
{
    struct complaints *complaints = arg;
    if (complaints->is_logged)
        log_line(is_error ? LOG_ERROR : LOG_WARN, "%s", line);
    if (is_error && complaints->first == NULL)
        complaints->first = copy_text(line);
}

/* ---- what runs ---- */

/*
 * With `lines` over it; after a reload those that do not fit any more are taken out and logged. Returns NULL, or what is
 * wrong (heap).
 */
static char *adopt_or_say(struct governor *g, const struct config *config, struct set_lines *lines, bool is_reload)
{
    struct variants variants = {0};
    char *why = set_lines_apply(lines, config->rules.policies, g->builtin, is_reload ? g->journal : NULL, &variants);
    if (why == NULL && !live_rules_adopt(&g->live, config, &variants, is_reload))
        why = copy_text("there have been too many different limits since the start: restart weir");
    if (why != NULL)
        variants_fini(&variants);
    return why;
}

void governor_on_table(struct governor *g, struct command_table *commands)
{
    if (!has_memory(g)) {
        log_line(LOG_WARN, "out of memory: the upstream's commands stay known as they were");
        command_table_put(commands);
        return;
    }
    live_rules_rebind(&g->live, commands);
}

/* ---- the whole file ---- */

static void drop_file(struct config_file *file)
{
    config_file_fini(file);
    *file = (struct config_file){0};
}

static void use_lines(struct governor *g, const struct set_lines *lines)
{
    set_lines_fini(&g->lines);
    g->lines = *lines;
}

/* Returns what needs a restart, heap; NULL: nothing does. */
static char *take_over(struct governor *g, struct config_file *file)
{
    config_diff_name_dropped(g->journal, &g->running, &g->loaded, file);
    char *kept = config_diff_keep_settings(g->journal, &g->running, file);
    drop_file(&g->loaded);
    drop_file(&g->running);
    g->loaded = *file;
    *file = (struct config_file){0};
    config_file_copy(&g->running, &g->loaded);
    return kept;
}

/* NULL, or the first thing that is wrong (heap); *unchanged as take_over returns it. */
static char *read_again(struct governor *g, char **unchanged)
{
    struct complaints complaints = {.is_logged = true};
    struct config_file file = {.path = g->path, .report = on_complaint, .arg = &complaints};
    if (g->path == NULL)
        return copy_text("weir was started without a file (-c FILE)");
    struct config *config = config_read(&file, g->builtin);
    struct set_lines kept = set_lines_copy(&g->lines);
    if (config != NULL)
        set_lines_keep_timed(&kept, g->journal);
    char *why = config != NULL ? adopt_or_say(g, config, &kept, true) : complaints.first;
    if (config != NULL && why == NULL) {
        *unchanged = take_over(g, &file);
        use_lines(g, &kept);
    } else {
        set_lines_fini(&kept);
    }
    drop_file(&file);
    config_free(config);
    return why;
}

static void note_starved_reload(struct governor *g)
{
    static const char why[] = "out of memory";
    g->reloads.is_last_bad = true;
    g->reloads.bad++;
    memcpy(g->reloads.last_error, why, sizeof why);
    log_event(g->journal, LOG_ERROR, "reload", "configuration not reloaded: %s: what ran before goes on", why);
}

static char *reload(struct governor *g, struct order *order)
{
    char *why = read_again(g, &order->text);
    g->reloads.is_last_bad = why != NULL;
    g->reloads.bad += why != NULL;
    if (why == NULL) {
        g->reloads.good++;
        g->reloads.last_good_unix_ms = clock_unix_ms();
        log_order(g->journal, order, "reload", "configuration reloaded from %s", g->path);
        return NULL;
    }
    char *error = order_error("configuration not reloaded: %s", why);
    snprintf(g->reloads.last_error, sizeof g->reloads.last_error, "%s", why);
    log_event(g->journal, LOG_ERROR, "reload", "%s: what ran before goes on", error + 4);
    free(why);
    return error;
}

const char *governor_path(const struct governor *g)
{
    return g->path;
}

const struct reloads *governor_reloads(const struct governor *g)
{
    return &g->reloads;
}

void governor_reload(struct governor *g)
{
    struct order order = {.kind = ORDER_RELOAD};
    governor_carry_out(g, &order);
    free(order.error);
    free(order.text);
}

/* ---- single lines ---- */

/*
 * Use `next`, a changed copy of `running`, from now on, with `lines` over it; takes both over. Returns NULL, or an error
 * (heap).
 */
static char *run_both(struct governor *g, struct config_file *next, struct set_lines *lines)
{
    struct complaints complaints = {0};
    next->report = on_complaint;
    next->arg = &complaints;
    struct config *config = config_build(next, g->builtin, CONFIG_LIVE);
    char *why = config != NULL ? adopt_or_say(g, config, lines, false) : complaints.first;
    config_free(config);
    if (why == NULL) {
        drop_file(&g->running);
        g->running = *next;
        use_lines(g, lines);
        return NULL;
    }
    drop_file(next);
    set_lines_fini(lines);
    char *error = order_error("%s", why);
    free(why);
    return error;
}

static char *run_with(struct governor *g, struct config_file *next)
{
    struct set_lines lines = set_lines_copy(&g->lines);
    return run_both(g, next, &lines);
}

static char *run_with_lines(struct governor *g, struct set_lines *lines)
{
    struct config_file next;
    config_file_copy(&next, &g->running);
    return run_both(g, &next, lines);
}

/* Run with `value` in the place of the lines of that name, and of what has been set there for a time. */
static char *change(struct governor *g, const struct line_name *name, const char *value)
{
    struct config_file next;
    struct set_lines lines = set_lines_copy(&g->lines);
    config_file_copy(&next, &g->running);
    config_file_replace(&next, name, value);
    if (name->kind == SECTION_POLICY)
        set_lines_drop(&lines, name->section, name->key, NULL);
    return run_both(g, &next, &lines);
}

/* What holds for all subjects of the policy; heap, NULL: nothing. */
static char *value_for_all(const struct governor *g, const struct line_name *name)
{
    const struct set_line *line = set_lines_find(&g->lines, name->section, name->key, NULL);
    return line != NULL ? copy_text(line->expression) : config_file_value(&g->running, name);
}

/* Could it have an effect? What replaces a line that is there needs no command that is known. */
static char *check_effect(const struct governor *g, const struct order *order, const struct line_name *name)
{
    char *there = value_for_all(g, name);
    bool is_there = there != NULL || order->is_handed_over;
    free(there);
    char *error = is_there ? NULL : order_check_class(name, g->live.commands);
    if (error == NULL && order_is_special(order) && !order->is_handed_over)
        error = order_check_whom(order, name, &g->live.rules->identity, g->live.rules->policies);
    return error;
}

/* A line for one subject, or for a time. `name` is the order's line. */
static char *change_lines(struct governor *g, struct order *order, struct line_name *name)
{
    struct set_lines next;
    char *policy = mem_strndup(name->section.at, name->section.len); /* the rules that own it may be freed */
    name->section = slice_str(policy);
    const struct set_line *known = set_lines_find(&g->lines, name->section, name->key, order->key);
    char *before = known != NULL        ? copy_text(known->expression)
                   : order->key == NULL ? config_file_value(&g->running, name)
                                        : NULL;
    char *error = order->kind == ORDER_SET
                      ? order_lines_set(order, name, &g->live.rules->identity, &g->lines, clock_ns(), &next)
                      : order_lines_unset(order, name, &g->lines, &next);
    if (error == NULL)
        error = run_with_lines(g, &next);
    char *now = error == NULL ? value_for_all(g, name) : NULL;
    if (error == NULL)
        order_lines_log(order, name, before, now, g->journal);
    free(now);
    free(before);
    free(policy);
    return error;
}

static char *set(struct governor *g, struct order *order)
{
    struct line_name name;
    char *error = order_line(order, g->live.rules->policies, &name);
    if (error == NULL)
        error = check_effect(g, order, &name);
    if (error != NULL)
        return error;
    if (order_is_special(order))
        return change_lines(g, order, &name);
    struct slice value = split_trim(slice_str(order->expression));
    char *expression = mem_strndup(value.at, value.len);
    char *policy = mem_strndup(name.section.at, name.section.len); /* the rules that own it may be freed */
    char *before = config_file_value(&g->running, &name);
    name.section = slice_str(policy);
    error = change(g, &name, expression);
    if (error == NULL)
        log_order(g->journal, order, "set", "[policy %s] %s = %s (before: %s)", policy, order->what, expression,
                  before != NULL ? before : "none");
    free(policy);
    free(before);
    free(expression);
    return error;
}

/* A limit has one algorithm: remove lines of another. */
static void replace_named(struct config_file *file, const struct line_name *name, const char *value)
{
    struct line_name other = *name;
    for (uint8_t kind = 0; quota_named_kind(name->key) != QUOTA_KINDS && kind < QUOTA_KINDS; kind++) {
        other.key = slice_str(quota_algorithm(kind)->name);
        if (quota_algorithm(kind)->is_named && !slice_eq_nocase(other.key, name->key))
            config_file_replace(file, &other, NULL);
    }
    config_file_replace(file, name, value);
}

static char *set_limit(struct governor *g, struct order *order)
{
    struct line_name name;
    struct slice value;
    char *error = order_named_line(order, g->live.rules->named, &name, &value);
    if (error != NULL)
        return error;
    struct config_file next;
    char *text = mem_strndup(value.at, value.len);
    char *before = config_file_value(&g->running, &name);
    config_file_copy(&next, &g->running);
    replace_named(&next, &name, text);
    error = run_with(g, &next);
    if (error == NULL)
        log_order(g->journal, order, "set", "[limit %s] %.*s = %s (before: %s)", order->policy, (int)name.key.len,
                  name.key.at, text, before != NULL ? before : "none");
    free(before);
    free(text);
    return error;
}

static char *unset(struct governor *g, struct order *order)
{
    struct line_name name;
    char *error = order_line(order, g->live.rules->policies, &name);
    if (error != NULL)
        return error;
    if (order_is_special(order) || set_lines_find(&g->lines, name.section, name.key, NULL) != NULL)
        return change_lines(g, order, &name);
    char *policy = mem_strndup(name.section.at, name.section.len);
    char *before = config_file_value(&g->running, &name);
    name.section = slice_str(policy);
    error = before != NULL ? change(g, &name, NULL) : order_error("policy %s has no limit %s", policy, order->what);
    if (error == NULL)
        log_order(g->journal, order, "unset", "[policy %s] %s removed (before: %s; now: none)", policy, order->what,
                  before);
    free(policy);
    free(before);
    return error;
}

static char *set_key(struct governor *g, struct order *order)
{
    struct named *next;
    char *error = order_key_set(order, g->live.rules->named, clock_ns(), g->journal, &next);
    if (error == NULL)
        live_rules_set_named(&g->live, next);
    return error;
}

static char *unset_key(struct governor *g, struct order *order)
{
    struct named *next;
    char *error = order_key_unset(order, g->live.rules->named, clock_ns(), g->journal, &next);
    if (error == NULL)
        live_rules_set_named(&g->live, next);
    return error;
}

static char *set_mode(struct governor *g, struct order *order)
{
    const struct line_name name = {SECTION_WEIR, SLICE(""), SLICE("mode")};
    if (!order_is_one_line(order->expression))
        return order_error("a mode is enforce or shadow");
    char *error = change(g, &name, order->expression);
    if (error == NULL)
        log_order(g->journal, order, "mode", "mode = %s",
                  policies_is_shadow(g->live.rules->policies) ? "shadow" : "enforce");
    return error;
}

/* ---- single subjects, and what ends ---- */

static char *block(struct governor *g, struct order *order)
{
    return order_block(order, &g->live, clock_ns());
}

/* The workers have done it. */
static char *note_round(struct governor *g, struct order *order)
{
    if (order->kind == ORDER_KICK)
        log_order(g->journal, order, "kick", "%zu connection%s of %s closed", order->n_rows,
                  order->n_rows == 1 ? "" : "s", order->key);
    return NULL;
}

uint64_t governor_next_end(const struct governor *g)
{
    uint64_t blocks_ns = shared_set_next_end(g->live.blocks), lines_ns = set_lines_next_end(&g->lines);
    return blocks_ns == 0 || (lines_ns > 0 && lines_ns < blocks_ns) ? lines_ns : blocks_ns;
}

static void end_lines(struct governor *g, uint64_t now_ns)
{
    uint64_t next_ns = set_lines_next_end(&g->lines);
    if (next_ns == 0 || next_ns > now_ns)
        return;
    struct set_lines living = set_lines_copy(&g->lines);
    set_lines_end(&living, now_ns, g->journal);
    free(run_with_lines(g, &living));
}

void governor_end(struct governor *g, uint64_t now_ns)
{
    if (!has_memory(g))
        return;
    order_blocks_end(&g->live, now_ns);
    end_lines(g, now_ns);
}

size_t governor_blocks(const struct governor *g, bool *has_been, uint16_t *id)
{
    *has_been = g->live.has_block;
    *id = g->live.block.id;
    return shared_set_count(g->live.blocks);
}

char *governor_hand_over(const struct governor *g)
{
    if (!has_memory(g))
        return NULL;
    return handover_write(&(struct handover){.running = &g->running,
                                             .loaded = &g->loaded,
                                             .lines = &g->lines,
                                             .named = g->live.rules->named,
                                             .blocks = g->live.blocks});
}

/* ---- against the file ---- */

static char *compare(struct governor *g, struct order *order)
{
    struct complaints complaints = {0};
    struct config_file file = {.path = g->path, .report = on_complaint, .arg = &complaints};
    if (g->path == NULL)
        return order_error("weir was started without a file (-c FILE): there is nothing to compare with");
    struct config *config = config_read(&file, g->builtin);
    if (config != NULL) {
        struct differences d = config_diff(&g->running, &file);
        order_key_differences(g->live.rules->named, clock_ns(), &d);
        set_lines_differences(&g->lines, &file, clock_ns(), &d);
        order_block_differences(g->live.blocks, clock_ns(), &d);
        order->differences = d.at;
        order->n_differences = d.count;
    }
    char *error = config != NULL ? NULL : order_error("the file cannot be compared: %s", complaints.first);
    free(complaints.first);
    drop_file(&file);
    config_free(config);
    return error;
}

/* ---- orders ---- */

static char *(*const kinds[])(struct governor *g, struct order *order) = {
    [ORDER_RELOAD] = reload,       [ORDER_SET] = set,
    [ORDER_SET_LIMIT] = set_limit, [ORDER_SET_KEY] = set_key,
    [ORDER_UNSET] = unset,         [ORDER_UNSET_KEY] = unset_key,
    [ORDER_MODE] = set_mode,       [ORDER_DIFF] = compare,
    [ORDER_BLOCK] = block,         [ORDER_UNBLOCK] = block,
    [ORDER_CLIENTS] = note_round,  [ORDER_KICK] = note_round,
};

void governor_carry_out(struct governor *g, struct order *order)
{
    size_t given = mem_given();
    order->is_starved = !order_goes_round(order) && !has_memory(g);
    if (!order->is_starved)
        order->error = kinds[order->kind](g, order);
    else if (order->kind == ORDER_RELOAD)
        note_starved_reload(g);
    else
        log_at(LOG_SITE_MEMORY, LOG_WARN, "an operator's order is not carried out: out of memory");
    note_memory(g, given);
}

/* ---- its life ---- */

struct governor *governor_new(const struct config *config, const struct config_file *file,
                              struct command_table *builtin, struct journal *journal)
{
    struct governor *g = mem_zalloc(1, sizeof *g);
    g->bytes = mem_given(); /* the file has been read, and little else been done */
    g->path = file->path;
    g->builtin = command_table_get(builtin);
    g->journal = journal;
    live_rules_init(&g->live, config, builtin, journal);
    config_file_copy(&g->loaded, file);
    config_file_copy(&g->running, file);
    if (!live_rules_adopt(&g->live, config, &(struct variants){0}, true)) {
        log_error("the configuration has more limits than weir can hold");
        exit(2);
    }
    return g;
}

struct record *governor_unlimited(const struct governor *g)
{
    return g->live.unlimited;
}

void governor_free(struct governor *g)
{
    command_table_put(g->builtin);
    drop_file(&g->loaded);
    drop_file(&g->running);
    set_lines_fini(&g->lines);
    live_rules_fini(&g->live);
    free(g);
}

void governor_watch(struct governor *g, void (*on_change)(void *arg), void *arg)
{
    g->live.on_change = on_change;
    g->live.arg = arg;
}

struct command_table *governor_commands(const struct governor *g)
{
    return g->live.commands;
}

struct rules *governor_rules(const struct governor *g)
{
    return g->live.rules;
}
