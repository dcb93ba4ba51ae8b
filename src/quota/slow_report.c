#include "quota/slow_report.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/num.h"

#define ENTRY_FIELDS 11
#define USUAL 10 /* entries, when nobody says how many */

/* The name, and of what follows it only how much there is. */
static void command(struct build *out, const struct slow_entry *entry)
{
    uint32_t more = entry->argc > 0 ? entry->argc - 1 : 0;
    build_array(out, more > 0 ? 2 : 1);
    build_bulk_str(out, entry->command);
    if (more > 0)
        build_printf_bulk(out, "... (%" PRIu32 " %sargument%s)", more, entry->argc == UINT16_MAX ? "or more " : "",
                          more == 1 ? "" : "s");
}

static void number(struct build *out, uint64_t value)
{
    build_int(out, value < INT64_MAX ? (int64_t)value : INT64_MAX);
}

static void entry(struct build *out, const struct slow_entry *entry, slow_waits_print *print_waits)
{
    char waits[SLOW_WAITS_ROOM];
    build_array(out, ENTRY_FIELDS);
    number(out, entry->id);
    number(out, entry->unix_ms / 1000);
    number(out, entry->total_us);
    command(out, entry);
    build_bulk_str(out, entry->address);
    build_bulk_str(out, entry->client);
    number(out, entry->waited_us);
    number(out, entry->upstream_us);
    number(out, entry->share_us);
    build_bulk(out, slice_of(waits, print_waits(entry->waits, waits)));
    build_bulk_str(out, entry->node);
}

static void list(struct build *out, struct slowlog *slowlog, size_t most, slow_waits_print *print_waits)
{
    size_t room = most < SLOWLOG_MOST ? most : SLOWLOG_MOST;
    struct slow_entry *entries = calloc(room > 0 ? room : 1, sizeof *entries);
    if (entries == NULL) {
        out->is_broken = true;
        return;
    }
    size_t n = slowlog_last(slowlog, entries, room);
    build_array(out, n);
    for (size_t i = 0; i < n; i++)
        entry(out, &entries[i], print_waits);
    free(entries);
}

static void get(struct build *out, struct slowlog *slowlog, const struct slice *words, size_t n,
                slow_waits_print *print_waits)
{
    int64_t most = USUAL;
    if (n == 2 && !num_parse(words[1], &most))
        build_error(out, SLICE("ERR value is not an integer or out of range"));
    else if (most < -1)
        build_error(out, SLICE("ERR count should be greater than or equal to -1"));
    else
        list(out, slowlog, most == -1 ? SIZE_MAX : (size_t)most, print_waits);
}

static void help(struct build *out)
{
    static const char *const lines[] = {
        "LIMIT SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:",
        "GET [<count>]",
        "    Return top <count> entries from the slow log (default: 10, -1 means all).",
        "    Entries are made of:",
        "    id, timestamp, time in microseconds, command name and number of arguments,",
        "    client IP and port, client name, besides the time: waited for a limit,",
        "    of the time: spent in Redis, waited for its share,",
        "    what it waited for in weir, the server that answered",
        "LEN",
        "    Return the length of the slow log.",
        "RESET",
        "    Reset the slow log.",
        "HELP",
        "    Print this help.",
    };
    build_array(out, sizeof lines / sizeof lines[0]);
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        build_status(out, slice_str(lines[i]));
}

void slow_report(struct build *out, struct slowlog *slowlog, const struct slice *words, size_t n,
                 slow_waits_print *print_waits)
{
    bool is_get = slice_eq_nocase(words[0], SLICE("get"));
    if (is_get && n <= 2) {
        get(out, slowlog, words, n, print_waits);
    } else if (n == 1 && slice_eq_nocase(words[0], SLICE("len"))) {
        number(out, slowlog_length(slowlog));
    } else if (n == 1 && slice_eq_nocase(words[0], SLICE("reset"))) {
        slowlog_reset(slowlog);
        build_status(out, SLICE("OK"));
    } else if (n == 1 && slice_eq_nocase(words[0], SLICE("help"))) {
        help(out);
    } else {
        build_error(out, SLICE("ERR unknown subcommand or wrong number of arguments. Try LIMIT SLOWLOG HELP."));
    }
}
