/* A control character separates the words of a line: no admin command contains that character. */
#include "run/commands/handover.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/slice.h"
#include "base/text.h"
#include "run/config/config_edit.h"

#define KIND "weir orders 1\n"
#define BETWEEN '\x1f'
#define WORDS_MAX 6
#define SHOWN_ROOM 1024

/* ---- writing ---- */

/* Adds a line of n words. */
static void add_line(struct text *text, size_t n, const struct slice *words)
{
    for (size_t i = 0; i < n; i++) {
        text_add(text, words[i]);
        text_add(text, i + 1 < n ? slice_of(&(const char){BETWEEN}, 1) : SLICE("\n"));
    }
}

static struct slice print_ns(uint64_t ns, char *out, size_t room)
{
    return slice_of(out, (size_t)snprintf(out, room, "%" PRIu64, ns));
}

static void write_difference(struct text *text, const struct difference *difference)
{
    const struct line_name name = difference_line(difference);
    struct slice running = slice_str(difference->running);
    if (name.kind == SECTION_POLICY && running.len > 0)
        add_line(
            text, 6,
            (struct slice[]){SLICE("set"), name.section, name.key, running, SLICE(""), SLICE("0")});
    else if (name.kind == SECTION_POLICY)
        add_line(text, 3, (struct slice[]){SLICE("unset"), name.section, name.key});
    else if (name.kind == SECTION_LIMIT && running.len > 0)
        add_line(text, 4, (struct slice[]){SLICE("limit"), name.section, name.key, running});
    else if (name.kind == SECTION_WEIR && slice_eq(name.key, SLICE("mode")))
        add_line(text, 2, (struct slice[]){SLICE("mode"), running});
}

static void handover_write_lines(struct text *text, const struct set_lines *lines)
{
    char ns[24];
    for (size_t i = 0; i < lines->n; i++) {
        const struct set_line *line = &lines->at[i];
        struct slice subject = line->subject != NULL ? slice_str(line->subject) : SLICE("");
        add_line(text, 6,
                 (struct slice[]){SLICE("set"), slice_str(line->policy), slice_str(line->what),
                                  slice_str(line->expression), subject,
                                  print_ns(line->until_ns, ns, sizeof ns)});
    }
}

static void handover_write_keys(struct text *text, const struct named_limit *limit)
{
    char ns[24];
    for (size_t i = 0; i < shared_set_count(limit->overrides); i++) {
        const struct override *one = overrides_at(limit->overrides, i);
        add_line(text, 6,
                 (struct slice[]){SLICE("key"), slice_str(limit->name),
                                  slice_str(quota_algorithm(limit->rule.kind)->name), one->rates,
                                  one->key, print_ns(one->until_ns, ns, sizeof ns)});
    }
}

char *handover_write(const struct handover *from)
{
    char ns[24];
    struct text text = {0};
    text_add(&text, SLICE(KIND));
    struct differences set = config_diff(from->running, from->loaded);
    for (size_t i = 0; i < set.count; i++)
        write_difference(&text, &set.at[i]);
    differences_fini(&set);
    handover_write_lines(&text, from->lines);
    for (size_t i = 0; i < named_count(from->named); i++)
        handover_write_keys(&text, named_at(from->named, i));
    for (size_t i = 0; i < shared_set_count(from->blocks); i++) {
        const struct block *one = blocks_at(from->blocks, i);
        add_line(&text, 4,
                 (struct slice[]){SLICE("block"), one->subject, one->reason,
                                  print_ns(one->until_ns, ns, sizeof ns)});
    }
    text_add(&text, slice_of("", 1)); /* the end of the string */
    if (text.is_broken)
        text_fini(&text);
    return text.at;
}

/* ---- reading ---- */

struct line {
    struct slice words[WORDS_MAX];
    size_t n;
};

static bool handover_next_line(struct slice *rest, struct slice *line)
{
    const char *end = rest->len > 0 ? memchr(rest->at, '\n', rest->len) : NULL;
    if (end == NULL)
        return false;
    *line = slice_of(rest->at, (size_t)(end - rest->at));
    split_take(rest, line->len + 1);
    return true;
}

static struct line take_apart(struct slice text)
{
    struct line line = {.n = 0};
    while (line.n < WORDS_MAX) {
        const char *end = text.len > 0 ? memchr(text.at, BETWEEN, text.len) : NULL;
        size_t len = end != NULL ? (size_t)(end - text.at) : text.len;
        line.words[line.n++] = slice_of(text.at, len);
        if (end == NULL)
            break;
        split_take(&text, len + 1);
    }
    return line;
}

/* Prints the line as an operator would write it. */
static void show(const struct line *line, char out[SHOWN_ROOM])
{
    static const char *const forms[] = {"set",   "LIMIT SET",       "unset", "LIMIT UNSET",
                                        "limit", "LIMIT SET LIMIT", "key",   "LIMIT SET LIMIT",
                                        "mode",  "LIMIT MODE",      "block", "LIMIT BLOCK"};
    size_t len = 0;
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i += 2)
        if (slice_eq(line->words[0], slice_str(forms[i])))
            len = (size_t)snprintf(out, SHOWN_ROOM, "%s", forms[i + 1]);
    bool is_block = slice_eq(line->words[0], SLICE("block"));
    for (size_t i = 1; i < line->n && len < SHOWN_ROOM; i++) {
        bool is_time = i == (is_block ? 3 : WORDS_MAX - 1);
        const char *before = line->n == WORDS_MAX && i == 4 ? "FOR "
                             : is_block && i == 2           ? "REASON "
                                                            : "";
        struct slice word = line->words[i];
        if (!is_time && word.len > 0)
            len += (size_t)snprintf(out + len, SHOWN_ROOM - len, " %s%.*s", before, (int)word.len,
                                    word.at);
    }
}

static char *handover_copy(struct slice word)
{
    return word.len > 0 ? mem_strndup(word.at, word.len) : NULL;
}

static void handover_set_key(struct admin_command *admin_command, struct slice key)
{
    admin_command->key = handover_copy(key);
    admin_command->key_len = key.len;
}

/* Fills the command from the line. False: this weir does not know the line. */
static bool handover_fill(struct admin_command *admin_command, const struct line *line)
{
    const struct slice *words = line->words;
    int64_t until_ns = 0;
    bool is_key = slice_eq(words[0], SLICE("key")), is_limit = slice_eq(words[0], SLICE("limit"));
    if (slice_eq(words[0], SLICE("set")) && line->n == 6) {
        admin_command->kind = ADMIN_SET;
        admin_command->policy = handover_copy(words[1]);
        admin_command->what = handover_copy(words[2]);
        admin_command->expression = handover_copy(words[3]);
        handover_set_key(admin_command, words[4]);
    } else if (slice_eq(words[0], SLICE("unset")) && line->n == 3) {
        admin_command->kind = ADMIN_UNSET;
        admin_command->policy = handover_copy(words[1]);
        admin_command->what = handover_copy(words[2]);
    } else if ((is_limit && line->n == 4) || (is_key && line->n == 6)) {
        admin_command->kind = is_key ? ADMIN_SET_KEY : ADMIN_SET_LIMIT;
        admin_command->policy = handover_copy(words[1]);
        admin_command->expression = mem_print("%.*s = %.*s", (int)words[2].len, words[2].at,
                                              (int)words[3].len, words[3].at);
        if (is_key)
            admin_command->key = mem_strndup(words[4].at, words[4].len),
            admin_command->key_len = words[4].len;
    } else if (slice_eq(words[0], SLICE("mode")) && line->n == 2) {
        admin_command->kind = ADMIN_MODE;
        admin_command->expression = handover_copy(words[1]);
    } else if (slice_eq(words[0], SLICE("block")) && line->n == 4) {
        admin_command->kind = ADMIN_BLOCK;
        handover_set_key(admin_command, words[1]);
        admin_command->expression = handover_copy(words[2]);
    } else {
        return false;
    }
    bool has_time = line->n == 6 || admin_command->kind == ADMIN_BLOCK;
    if (has_time && (!num_parse(words[line->n - 1], &until_ns) || until_ns < 0))
        return false;
    admin_command->until_ns = (uint64_t)until_ns;
    return true;
}

/* The commands that were read, and the line of each. */
struct found {
    struct admin_command **admin_commands;
    struct line *lines;
    size_t n, room;
    size_t n_over; /* commands that have ended already; not kept */
};

static void found_fini(struct found *found)
{
    for (size_t i = 0; i < found->n; i++)
        admin_command_free(found->admin_commands[i]);
    free(found->admin_commands);
    free(found->lines);
}

/* Takes over the command. */
static void add_admin_command(struct found *found, struct admin_command *admin_command,
                              const struct line *line)
{
    if (found->n == found->room) {
        found->room = 2 * found->room + 16;
        found->admin_commands =
            mem_realloc(found->admin_commands, found->room, sizeof(struct admin_command *));
        found->lines = mem_realloc(found->lines, found->room, sizeof *found->lines);
    }
    found->admin_commands[found->n] = admin_command;
    found->lines[found->n++] = *line;
}

static void log_dropped(const struct line *line, const char *why, struct journal *journal)
{
    char shown[SHOWN_ROOM] = "";
    show(line, shown);
    journal_log(journal, LOG_WARN, "upgrade", "upgrade: dropped: %.300s: %s", shown, why);
}

/* Reads one line. Returns NULL, or why the line is dropped. */
static const char *handover_find(struct found *found, const struct line *line)
{
    struct admin_command *admin_command = admin_command_new(ADMIN_SET);
    if (admin_command == NULL)
        return "out of memory";
    snprintf(admin_command->by, sizeof admin_command->by, "the previous process");
    admin_command->is_handed_over = true;
    bool is_known = handover_fill(admin_command, line);
    bool is_over = is_known && admin_command->until_ns > 0 && admin_command->until_ns <= clock_ns();
    found->n_over += is_over;
    if (is_known && !is_over)
        add_admin_command(found, admin_command, line);
    else
        admin_command_free(admin_command);
    return is_known ? NULL : "this version of weir does not support it";
}

static bool handover_begin(struct slice *rest)
{
    struct slice kind = SLICE(KIND);
    if (rest->len < kind.len || memcmp(rest->at, kind.at, kind.len) != 0)
        return false;
    split_take(rest, kind.len);
    return true;
}

/* Logs the failed commands. Returns how many commands were taken over or have ended. */
static size_t log_outcome(const struct found *found, struct journal *journal)
{
    size_t n_taken = found->n_over;
    for (size_t i = 0; i < found->n; i++) {
        const struct admin_command *admin_command = found->admin_commands[i];
        n_taken += !admin_command->is_starved && admin_command->error == NULL;
        if (admin_command->is_starved)
            log_dropped(&found->lines[i], "out of memory", journal);
        else if (admin_command->error != NULL)
            log_dropped(&found->lines[i], admin_command->error + strlen("ERR "), journal);
    }
    return n_taken;
}

bool handover_read(const char *text, struct journal *journal,
                   void (*carry_out)(void *arg, struct admin_command *const *admin_commands,
                                     size_t n),
                   void *arg)
{
    struct slice rest = slice_str(text), one;
    struct found found = {0};
    if (!handover_begin(&rest))
        return false;
    while (handover_next_line(&rest, &one)) {
        const struct line line = take_apart(one);
        const char *why = handover_find(&found, &line);
        if (why != NULL)
            log_dropped(&line, why, journal);
    }
    carry_out(arg, found.admin_commands, found.n);
    size_t n_taken = log_outcome(&found, journal);
    if (n_taken > 0)
        journal_log(journal, LOG_INFO, "upgrade", "upgrade: %zu operator setting%s taken over",
                    n_taken, n_taken == 1 ? "" : "s");
    found_fini(&found);
    return true;
}

/*
 * True if the line is in the text; then *next is the rest after it. The search begins at *next,
 * where the line is if both texts have the same order.
 */
static bool handover_has_line(struct slice text, struct slice *next, struct slice wanted)
{
    struct slice rest = *next, one;
    for (int round = 0; round < 2; round++, rest = text)
        while (handover_next_line(&rest, &one))
            if (slice_eq(one, wanted)) {
                *next = rest;
                return true;
            }
    return false;
}

void handover_log(const char *text, const char *other, const char *what, const char *why,
                  struct journal *journal)
{
    struct slice rest = slice_str(text), one;
    struct slice others = other != NULL ? slice_str(other) : SLICE(""), next = others;
    if (!handover_begin(&rest))
        return;
    while (handover_next_line(&rest, &one)) {
        char shown[SHOWN_ROOM] = "";
        const struct line line = take_apart(one);
        if (handover_has_line(others, &next, one))
            continue;
        show(&line, shown);
        journal_log(journal, LOG_WARN, "upgrade", "upgrade: %s: %.300s: %s", what, shown, why);
    }
}
