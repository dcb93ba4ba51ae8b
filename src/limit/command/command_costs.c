#include "limit/command/command_costs.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/slice.h"

#define POLLS 3.0  /* chosen: polls that a cost is smoothed over */
#define ROW_UP 8.0 /* chosen: largest factor by which the cost of a row rises in a poll */
/* chosen: largest factor of any other change, so that no tenant can make a command look free */
#define STEP 2.0
#define ROW_CALLS 10  /* chosen: a row with fewer calls is not updated ... */
#define ROW_US 100000 /* ... unless the calls took this long */
/*
 * With fewer calls the work of an idle Redis, 1 to 3 ms a second, would add 0.3 us or more to each
 * call.
 */
#define FIXED_CALLS 10000
#define FIXED_LEAST_NS 100
#define FIXED_MOST_NS 20000
/* largest share of scripts in a poll's time; with more, the fixed part is too low */
#define SCRIPTS_MOST 0.1
#define COUNT_MOST 1e12   /* calls or us of one row in one poll: 10^12 us are eleven days */
#define LINES_MOST 8192   /* lines of one text; a server has some 400 commands */
#define DIGITS_MOST 18    /* digits of a number: fits in 64 bits */
#define FRACTION_DIGITS 6 /* digits of a fraction of a second */
#define SECONDS_MOST 1000000000

struct command_count {
    uint64_t calls, usec;
};

struct reported_work {
    double calls, usec;
};

/* The sums of the answers of all nodes. */
struct command_poll {
    struct reported_work all; /* of all rows */
    double cpu_ns;
    double script_usec; /* the part spent in scripts */
};

struct command_costs {
    struct command_table *table;
    uint32_t generation;        /* generation of the table */
    struct reported_work *rows; /* by id: calls and time since the last update of the row; heap */
    struct command_poll poll;   /* sums since the last poll ended */
    double fixed_ns;
    bool knows_fixed; /* a poll without scripts has set fixed_ns */
};

/* ---- texts ---- */

/* Takes `word` off the front of *text. False: *text does not begin with `word`. */
static bool command_costs_take_word(struct slice *text, struct slice word)
{
    if (text->len < word.len || memcmp(text->at, word.at, word.len) != 0)
        return false;
    *text = slice_of(text->at + word.len, text->len - word.len);
    return true;
}

/* Takes a number off the front of *text. False: no digits, or too many. */
static bool command_costs_take_number(struct slice *text, uint64_t *number)
{
    size_t n = 0;
    for (*number = 0; n < text->len && text->at[n] >= '0' && text->at[n] <= '9' && n <= DIGITS_MOST;
         n++)
        *number = *number * 10 + (uint64_t)(text->at[n] - '0');
    *text = slice_of(text->at + n, text->len - n);
    return n > 0 && n <= DIGITS_MOST;
}

/* Reads "cmdstat_get:calls=1,usec=8,...". A name has no ':'; Redis writes '_' instead. */
static bool read_stat(struct slice line, struct slice *name, struct command_count *count)
{
    if (!command_costs_take_word(&line, SLICE("cmdstat_")))
        return false;
    const char *colon = memchr(line.at, ':', line.len);
    if (colon == NULL)
        return false;
    *name = slice_of(line.at, (size_t)(colon - line.at));
    return command_costs_take_word(&line, *name) &&
           command_costs_take_word(&line, SLICE(":calls=")) &&
           command_costs_take_number(&line, &count->calls) &&
           command_costs_take_word(&line, SLICE(",usec=")) &&
           command_costs_take_number(&line, &count->usec);
}

/* Reads seconds, "12.345678", as ns; 0: not a number. */
static uint64_t read_seconds(struct slice text)
{
    uint64_t seconds;
    uint64_t fraction = 0;
    if (!command_costs_take_number(&text, &seconds) || seconds > SECONDS_MOST)
        return 0;
    size_t left = text.len;
    if (!command_costs_take_word(&text, SLICE(".")) ||
        !command_costs_take_number(&text, &fraction) || left - text.len > 1 + FRACTION_DIGITS)
        return seconds * NS_PER_S;
    for (size_t digits = left - text.len - 1; digits < FRACTION_DIGITS; digits++)
        fraction *= 10;
    return seconds * NS_PER_S + fraction * NS_PER_US;
}

uint64_t command_costs_read_cpu(struct slice text)
{
    uint64_t all_ns = 0;
    uint64_t main_ns = 0;
    for (struct slice line; split_next(&text, '\n', &line);)
        if (command_costs_take_word(&line, SLICE("used_cpu_sys_main_thread:")) ||
            command_costs_take_word(&line, SLICE("used_cpu_user_main_thread:")))
            main_ns += read_seconds(line);
        else if (command_costs_take_word(&line, SLICE("used_cpu_sys:")) ||
                 command_costs_take_word(&line, SLICE("used_cpu_user:")))
            all_ns += read_seconds(line);
    return main_ns > 0 ? main_ns : all_ns;
}

/* ---- the difference between two answers of a node ---- */

void command_counts_fini(struct command_counts *counts)
{
    free(counts->rows);
    *counts = (struct command_counts){0};
}

/* Clears the last answer. The next answer counts only as a base. */
static void restart(struct command_counts *counts, const struct command_costs *costs)
{
    command_counts_fini(counts);
    counts->rows = mem_zalloc(command_table_count(costs->table), sizeof *counts->rows);
    counts->generation = costs->generation;
}

/* Sets *more to the difference. False: negative, or implausibly large. */
static bool difference(const struct command_count *now, struct command_count *before,
                       struct reported_work *more)
{
    const struct command_count was = *before;
    *before = *now;
    if (now->calls < was.calls || now->usec < was.usec)
        return false;
    *more =
        (struct reported_work){(double)(now->calls - was.calls), (double)(now->usec - was.usec)};
    return more->calls <= COUNT_MOST && more->usec <= COUNT_MOST;
}

static void command_costs_add(struct reported_work *sum, const struct reported_work *more)
{
    sum->calls += more->calls;
    sum->usec += more->usec;
}

/*
 * Before 7.0 Redis counts subcommands as their container: adds the counts of the container to each
 * subcommand.
 */
static void take_subcommands(struct command_costs *costs, const struct command *container,
                             const struct reported_work *more)
{
    for (size_t id = 1; id < command_table_count(costs->table); id++) {
        const struct command *row = command_table_row(costs->table, id);
        if (row->in_container && row->name_len > container->name_len &&
            row->name[container->name_len] == '|' &&
            memcmp(row->name, container->name, container->name_len) == 0)
            command_costs_add(&costs->rows[id], more);
    }
}

static void take_row(struct command_costs *costs, struct command_poll *told,
                     const struct command *command, struct reported_work more)
{
    if (command_is_bracket(command))
        more.usec = 0;
    command_costs_add(&costs->rows[command->id], &more);
    command_costs_add(&told->all, &more);
    if (command->kind == KIND_SCRIPT)
        told->script_usec += more.usec;
    if (command->has_subcommands)
        take_subcommands(costs, command, &more);
}

void command_costs_take(struct command_costs *costs, struct command_counts *counts,
                        struct slice text, uint64_t cpu_ns)
{
    bool is_first = counts->generation != costs->generation || cpu_ns < counts->cpu_ns;
    if (is_first)
        restart(counts, costs);
    struct command_poll told = {0};
    bool was_reset = false;
    struct slice name;
    struct command_count now;
    size_t left = LINES_MOST;
    for (struct slice line; left > 0 && split_next(&text, '\n', &line); left--) {
        struct reported_work more;
        const struct command *command =
            read_stat(line, &name, &now) ? command_by_name(costs->table, name) : NULL;
        if (command == NULL)
            continue;
        if (!difference(&now, &counts->rows[command->id], &more))
            was_reset = true;
        else if (!is_first)
            take_row(costs, &told, command, more);
    }
    if (!is_first && !was_reset && counts->cpu_ns > 0) {
        command_costs_add(&costs->poll.all, &told.all);
        costs->poll.script_usec += told.script_usec;
        costs->poll.cpu_ns += (double)(cpu_ns - counts->cpu_ns);
    }
    counts->cpu_ns = cpu_ns;
}

/* ---- from sums to costs ---- */

static double within(double value, double least, double most)
{
    return value < least ? least : value > most ? most : value;
}

/*
 * Moves `before` by a third of the way to `now`: up by a factor of at most `up`, down by at most
 * STEP.
 */
static double smoothed(double before, double now, double up)
{
    return within(before + (now - before) / POLLS, before / STEP, before * up);
}

static void set_cost(struct command_costs *costs, const struct command *command, double ns,
                     double calls)
{
    if (command_cost_calls(command) > 0)
        ns = smoothed(command_cost_ns(command), ns, ROW_UP);
    ns = within(ns, COSTS_LEAST_NS, COSTS_MOST_NS);
    command_table_set_cost(costs->table, command->id, (uint32_t)ns,
                           (uint32_t)within(calls, 1, UINT32_MAX));
}

static void command_costs_end_row(struct command_costs *costs, size_t id)
{
    const struct command *command = command_table_row(costs->table, id);
    const struct reported_work told = costs->rows[id];
    if (told.calls < 1 || (told.calls < ROW_CALLS && told.usec < ROW_US))
        return;
    costs->rows[id] = (struct reported_work){0};
    double ns = costs->fixed_ns + told.usec / told.calls * (double)NS_PER_US;
    set_cost(costs, command, ns, told.calls);
}

static void end_fixed(struct command_costs *costs)
{
    const struct command_poll poll = costs->poll;
    costs->poll = (struct command_poll){0};
    bool are_scripts = poll.script_usec > poll.all.usec * SCRIPTS_MOST;
    if (poll.cpu_ns <= 0 || poll.all.calls < FIXED_CALLS || (are_scripts && costs->knows_fixed))
        return;
    double ns = (poll.cpu_ns - poll.all.usec * (double)NS_PER_US) / poll.all.calls;
    ns = within(ns, FIXED_LEAST_NS, FIXED_MOST_NS);
    costs->fixed_ns = costs->knows_fixed ? smoothed(costs->fixed_ns, ns, STEP) : ns;
    costs->knows_fixed |= !are_scripts;
}

void command_costs_end_poll(struct command_costs *costs)
{
    end_fixed(costs);
    for (size_t id = 1; id < command_table_count(costs->table); id++)
        command_costs_end_row(costs, id);
}

uint32_t command_costs_fixed_ns(const struct command_costs *costs)
{
    return (uint32_t)costs->fixed_ns;
}

/* ---- the table ---- */

struct command_costs *command_costs_new(struct command_table *table)
{
    struct command_costs *costs = mem_zalloc(1, sizeof *costs);
    costs->fixed_ns = COSTS_FIXED_NS;
    command_costs_set_table(costs, table);
    return costs;
}

void command_costs_set_table(struct command_costs *costs, struct command_table *table)
{
    if (table == costs->table)
        return;
    if (costs->table != NULL)
        command_table_put(costs->table);
    free(costs->rows);
    costs->table = command_table_get(table);
    costs->rows = mem_zalloc(command_table_count(table), sizeof *costs->rows);
    costs->generation++;
}

void command_costs_free(struct command_costs *costs)
{
    command_table_put(costs->table);
    free(costs->rows);
    free(costs);
}
