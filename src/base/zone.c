/*
 * Reads TZif: a header and a block of data with 4-byte times. From version 2 on a second header and
 * block with 8-byte times follow, and a footer line with the rule for later times. The last block
 * is used.
 */
#include "base/zone.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/why.h"

#define HOUR_S 3600
#define OFFSET_HOURS 24      /* most hours of a clock from UTC; POSIX */
#define TRANSITION_HOURS 167 /* most hours of a clock change from midnight; RFC 9636 */
#define HEADER_BYTES 44
#define TYPE_BYTES 6
#define TIMES_MAX 10000
#define OFFSET_MOST_S (26 * 3600) /* RFC 9636: the largest offset from UTC */

struct transition {
    int64_t at_s;
    int32_t offset_s; /* offset after the change */
};

struct zone {
    _Atomic unsigned holders;
    uint64_t id;
    char name[ZONE_NAME_MAX + 1];
    int32_t first_s; /* offset before the first change */
    bool has_rule;   /* `rule` is valid after the last change */
    struct zone_rule rule;
    size_t n;
    struct transition transitions[]; /* in order of time */
};

/* ---- the rule: parsing ---- */

static bool zone_is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool take_char(struct slice *rest, char c)
{
    if (rest->len == 0 || rest->at[0] != c)
        return false;
    *rest = slice_of(rest->at + 1, rest->len - 1);
    return true;
}

static bool zone_take_number(struct slice *rest, int32_t least, int32_t most, int32_t *number)
{
    *number = 0;
    if (rest->len == 0 || !zone_is_digit(rest->at[0]))
        return false;
    while (rest->len > 0 && zone_is_digit(rest->at[0]) && *number <= most) {
        *number = *number * 10 + (rest->at[0] - '0');
        *rest = slice_of(rest->at + 1, rest->len - 1);
    }
    return *number >= least && *number <= most;
}

/* Reads "CET" or "<+0330>". */
static bool zone_take_name(struct slice *rest)
{
    bool is_quoted = take_char(rest, '<');
    size_t len = 0;
    while (len < rest->len &&
           (is_quoted ? rest->at[len] != '>'
                      : (rest->at[len] | 0x20) >= 'a' && (rest->at[len] | 0x20) <= 'z'))
        len++;
    *rest = slice_of(rest->at + len, rest->len - len);
    return len > 0 && (!is_quoted || take_char(rest, '>'));
}

/* Reads "2", "-3:30" or "+167:59:59". */
static bool take_time(struct slice *rest, int32_t most_hours, int32_t *seconds)
{
    int32_t part, unit = HOUR_S;
    bool is_negative = take_char(rest, '-');
    if (!is_negative)
        (void)take_char(rest, '+');
    if (!zone_take_number(rest, 0, most_hours, &part))
        return false;
    *seconds = part * HOUR_S;
    while (unit > 1 && take_char(rest, ':')) {
        unit /= 60;
        if (!zone_take_number(rest, 0, 59, &part))
            return false;
        *seconds += part * unit;
    }
    *seconds = is_negative ? -*seconds : *seconds;
    return true;
}

static bool take_month_day(struct slice *rest, struct zone_transition *transition)
{
    int32_t month, week, day;
    if (!zone_take_number(rest, 1, 12, &month) || !take_char(rest, '.') ||
        !zone_take_number(rest, 1, 5, &week) || !take_char(rest, '.') ||
        !zone_take_number(rest, 0, 6, &day))
        return false;
    transition->month = (uint8_t)(month - 1);
    transition->week = (uint8_t)week;
    transition->day = (uint16_t)day;
    return true;
}

/* Reads ",M3.5.0/3". */
static bool take_transition(struct slice *rest, struct zone_transition *transition)
{
    int32_t day;
    if (!take_char(rest, ','))
        return false;
    transition->time_s = 2 * HOUR_S;
    transition->form = take_char(rest, 'M') ? 'M' : take_char(rest, 'J') ? 'J' : 'D';
    if (transition->form == 'M') {
        if (!take_month_day(rest, transition))
            return false;
    } else {
        if (!zone_take_number(rest, transition->form == 'J', 365, &day))
            return false;
        transition->day = (uint16_t)day;
    }
    return !take_char(rest, '/') || take_time(rest, TRANSITION_HOURS, &transition->time_s);
}

/* Reads an offset. In POSIX, local time plus the offset is UTC, so positive offsets are west. */
static bool take_offset(struct slice *rest, int32_t *east_s)
{
    int32_t west_s;
    if (!take_time(rest, OFFSET_HOURS, &west_s))
        return false;
    *east_s = -west_s;
    return true;
}

bool zone_rule_parse(struct slice text, struct zone_rule *rule)
{
    struct slice rest = text;
    *rule = (struct zone_rule){0};
    if (!zone_take_name(&rest) || !take_offset(&rest, &rule->standard_s))
        return false;
    if (rest.len == 0)
        return true;
    rule->has_summer = true;
    rule->summer_s = rule->standard_s + HOUR_S;
    if (!zone_take_name(&rest) ||
        (rest.len > 0 && rest.at[0] != ',' && !take_offset(&rest, &rule->summer_s)))
        return false;
    return take_transition(&rest, &rule->begin) && take_transition(&rest, &rule->end) &&
           rest.len == 0;
}

/* ---- the rule: clock changes ---- */

/* Returns the weekday, 0 is Sunday. 1970-01-01 was a Thursday. */
static int64_t weekday_of(int64_t day)
{
    return day + 4 - 7 * civil_floor(day + 4, 7);
}

/* Returns the day of the clock change in this year, in days since 1970. */
static int64_t transition_day(const struct zone_transition *transition, int64_t year)
{
    int64_t new_year = civil_year_day(year);
    if (transition->form == 'D')
        return new_year + transition->day;
    if (transition->form == 'J') /* February 29 has no number */
        return new_year + transition->day - 1 + (transition->day > 59 && civil_is_leap(year));
    int64_t first = new_year + civil_days_before(year, transition->month);
    int64_t next_month = civil_month_day(12 * year + transition->month + 1);
    int64_t day =
        first + (transition->day - weekday_of(first) + 7) % 7 + 7 * (transition->week - 1);
    return day < next_month ? day : day - 7;
}

struct event {
    int64_t at_s;
    int32_t offset_s; /* offset after the change */
};

/*
 * Inserts a clock change in order of time. If an end and a beginning of summer time coincide,
 * summer time goes on.
 */
static void add_event(struct event *events, unsigned *n, struct event event, bool is_begin)
{
    unsigned i = (*n)++;
    while (i > 0 &&
           (events[i - 1].at_s > event.at_s || (events[i - 1].at_s == event.at_s && !is_begin))) {
        events[i] = events[i - 1];
        i--;
    }
    events[i] = event;
}

int32_t zone_rule_offset(const struct zone_rule *rule, int64_t unix_s, int64_t *until_s)
{
    struct event events[6] = {{0}};
    unsigned n = 0;
    *until_s = INT64_MAX;
    if (!rule->has_summer)
        return rule->standard_s;
    int64_t year = civil_year_of(civil_floor(unix_s, CIVIL_DAY_S));
    for (int64_t y = year - 1; y <= year + 1; y++) {
        int64_t begin_s =
            transition_day(&rule->begin, y) * CIVIL_DAY_S + rule->begin.time_s - rule->standard_s;
        int64_t end_s =
            transition_day(&rule->end, y) * CIVIL_DAY_S + rule->end.time_s - rule->summer_s;
        add_event(events, &n, (struct event){begin_s, rule->summer_s}, true);
        add_event(events, &n, (struct event){end_s, rule->standard_s}, false);
    }
    /*
     * begins and ends of summer time alternate: the offset before events[0] equals the offset after
     * events[1]
     */
    int32_t offset_s = events[1].offset_s;
    for (unsigned i = 0; i < n && events[i].at_s <= unix_s; i++)
        offset_s = events[i].offset_s;
    for (unsigned i = n; i > 0 && events[i - 1].at_s > unix_s; i--)
        *until_s = events[i - 1].at_s;
    return offset_s;
}

/* ---- the file: bytes ---- */

static int64_t number_at(const char *at, size_t size)
{
    uint64_t number = ((unsigned char)at[0] & 0x80) != 0 ? UINT64_MAX : 0;
    for (size_t i = 0; i < size; i++)
        number = number << 8 | (unsigned char)at[i];
    return (int64_t)number;
}

/* The counts of a header, in the order of the header. */
enum { IS_UT, IS_STANDARD, LEAPS, TIMES, TYPES, CHARS, COUNTS };

struct block {
    uint32_t n[COUNTS];
    char version;
    size_t time_bytes;
    const char *data;
    size_t len;
};

static size_t block_bytes(const struct block *block)
{
    return (size_t)block->n[TIMES] * (block->time_bytes + 1) +
           (size_t)block->n[TYPES] * TYPE_BYTES + block->n[CHARS] +
           (size_t)block->n[LEAPS] * (block->time_bytes + 4) + block->n[IS_STANDARD] +
           block->n[IS_UT];
}

static bool zone_take_block(struct slice *rest, size_t time_bytes, struct block *block)
{
    static const size_t counts_at = 20;
    if (rest->len < HEADER_BYTES || memcmp(rest->at, "TZif", 4) != 0)
        return false;
    block->version = rest->at[4];
    block->time_bytes = time_bytes;
    for (unsigned i = 0; i < COUNTS; i++) {
        int64_t n = number_at(rest->at + counts_at + 4 * i, 4);
        if (n < 0 || n > TIMES_MAX)
            return false;
        block->n[i] = (uint32_t)n;
    }
    block->data = rest->at + HEADER_BYTES;
    block->len = block_bytes(block);
    if (block->len > rest->len - HEADER_BYTES)
        return false;
    *rest = slice_of(block->data + block->len, rest->len - HEADER_BYTES - block->len);
    return true;
}

/* ---- the file: clock changes ---- */

static bool zone_read_offset(const struct block *block, unsigned type, int32_t *offset_s)
{
    const char *types = block->data + block->n[TIMES] * (block->time_bytes + 1);
    if (type >= block->n[TYPES])
        return false;
    *offset_s = (int32_t)number_at(types + (size_t)type * TYPE_BYTES, 4);
    return *offset_s >= -OFFSET_MOST_S && *offset_s <= OFFSET_MOST_S;
}

static bool read_turns(struct zone *zone, const struct block *block)
{
    const char *kinds = block->data + block->n[TIMES] * block->time_bytes;
    if (!zone_read_offset(block, 0, &zone->first_s))
        return false;
    zone->n = block->n[TIMES];
    for (size_t i = 0; i < zone->n; i++) {
        struct transition *transition = &zone->transitions[i];
        transition->at_s = number_at(block->data + i * block->time_bytes, block->time_bytes);
        if (!zone_read_offset(block, (unsigned char)kinds[i], &transition->offset_s) ||
            (i > 0 && transition->at_s <= zone->transitions[i - 1].at_s))
            return false;
    }
    return true;
}

/* Reads "\nCET-1CEST,M3.5.0,M10.5.0/3\n". An empty line means that there is no rule. */
static bool read_footer(struct zone *zone, struct slice rest)
{
    if (rest.len < 2 || rest.at[0] != '\n')
        return false;
    const char *end = memchr(rest.at + 1, '\n', rest.len - 1);
    if (end == NULL)
        return false;
    struct slice text = slice_of(rest.at + 1, (size_t)(end - rest.at - 1));
    zone->has_rule = text.len > 0;
    return !zone->has_rule || zone_rule_parse(text, &zone->rule);
}

static struct zone *new_zone(struct slice name, size_t n)
{
    static _Atomic uint64_t ids;
    struct zone *zone = mem_zalloc(1, sizeof *zone + n * sizeof zone->transitions[0]);
    atomic_init(&zone->holders, 1);
    zone->id = atomic_fetch_add_explicit(&ids, 1, memory_order_relaxed) + 1;
    memcpy(zone->name, name.at, name.len < ZONE_NAME_MAX ? name.len : ZONE_NAME_MAX);
    return zone;
}

struct zone *zone_parse(struct slice name, struct slice tzif, char *why, size_t why_size)
{
    struct block block;
    struct slice rest = tzif;
    bool is_whole = zone_take_block(&rest, 4, &block);
    bool has_footer = is_whole && block.version >= '2';
    if (has_footer)
        is_whole = zone_take_block(&rest, 8, &block);
    if (!is_whole) {
        why_set(why, why_size, "the file of the time zone %.*s is incomplete or no TZif file",
                WHY_SLICE(name));
        return NULL;
    }
    if (block.n[LEAPS] > 0) {
        why_set(why, why_size,
                "the time zone %.*s counts leap seconds, unlike unix time: choose another zone",
                WHY_SLICE(name));
        return NULL;
    }
    struct zone *zone = new_zone(name, block.n[TIMES]);
    if (!read_turns(zone, &block) || (has_footer && !read_footer(zone, rest))) {
        zone_put(zone);
        why_set(why, why_size, "the file of the time zone %.*s is damaged", WHY_SLICE(name));
        return NULL;
    }
    return zone;
}

/* ---- offsets ---- */

struct zone *zone_get(struct zone *zone)
{
    if (zone != NULL)
        atomic_fetch_add_explicit(&zone->holders, 1, memory_order_relaxed);
    return zone;
}

void zone_put(struct zone *zone)
{
    if (zone != NULL && atomic_fetch_sub_explicit(&zone->holders, 1, memory_order_acq_rel) == 1)
        free(zone);
}

const char *zone_name(const struct zone *zone)
{
    return zone != NULL ? zone->name : "UTC";
}

uint64_t zone_id(const struct zone *zone)
{
    return zone != NULL ? zone->id : 0;
}

/* Returns how many clock changes lie at or before this time. */
static size_t turns_until(const struct zone *zone, int64_t unix_s)
{
    size_t low = 0, high = zone->n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (zone->transitions[middle].at_s <= unix_s)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int32_t zone_offset(const struct zone *zone, int64_t unix_s, int64_t *until_s)
{
    *until_s = INT64_MAX;
    if (zone == NULL)
        return 0;
    size_t made = turns_until(zone, unix_s);
    if (made == zone->n && zone->has_rule)
        return zone_rule_offset(&zone->rule, unix_s, until_s);
    if (made < zone->n)
        *until_s = zone->transitions[made].at_s;
    return made > 0 ? zone->transitions[made - 1].offset_s : zone->first_s;
}

/* ---- the database ---- */

/* chosen: the largest file of the database has less than 4 KiB */
#define FILE_BYTES_MAX ((size_t)256 << 10)
#define NAMES_MAX 5000 /* chosen: the database has some 600 names */
#define DEPTH_MAX 3    /* parts of a name, as in America/Argentina/Salta */

static const char *database(void)
{
    const char *folder = getenv("TZDIR");
    return folder != NULL && folder[0] == '/' ? folder : "/usr/share/zoneinfo";
}

/* ---- the database: names ---- */

static bool is_upper(char c)
{
    return c >= 'A' && c <= 'Z';
}

static bool is_name_char(char c)
{
    return is_upper(c) || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '-' || c == '+';
}

/*
 * True if the text may be a part of a name. Each part of a name begins with a capital. Files
 * without a capital are no zones, or count leap seconds (right/).
 */
static bool is_part(const char *text, size_t len)
{
    for (size_t i = 0; i < len; i++)
        if (!is_name_char(text[i]))
            return false;
    return len > 0 && is_upper(text[0]);
}

static bool zone_file_is_name(struct slice name)
{
    size_t start = 0;
    for (size_t i = 0; i <= name.len; i++) {
        if (i < name.len && name.at[i] != '/')
            continue;
        if (!is_part(name.at + start, i - start))
            return false;
        start = i + 1;
    }
    return name.len > 0 && name.len <= ZONE_NAME_MAX;
}

/* ---- the database: the nearest name ---- */

struct names {
    char (*at)[ZONE_NAME_MAX + 1];
    size_t n;
};

static void add_folder(struct names *names, const char *folder, unsigned depth);

static void add_name(struct names *names, const char *name, unsigned depth)
{
    char path[PATH_MAX];
    struct stat is;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", database(), name) >= sizeof path ||
        stat(path, &is) != 0)
        return;
    if (S_ISDIR(is.st_mode)) {
        add_folder(names, name, depth + 1);
        return;
    }
    names->at = mem_realloc(names->at, names->n + 1, sizeof names->at[0]);
    snprintf(names->at[names->n++], sizeof names->at[0], "%s", name);
}

/* Adds the names in a folder of the database; "" is the database's own folder. */
static void add_folder(struct names *names, const char *folder, unsigned depth)
{
    char path[PATH_MAX], name[ZONE_NAME_MAX + 1];
    if (depth > DEPTH_MAX ||
        (size_t)snprintf(path, sizeof path, "%s/%s", database(), folder) >= sizeof path)
        return;
    DIR *open = opendir(path);
    struct dirent *entry;
    while (open != NULL && names->n < NAMES_MAX && (entry = readdir(open)) != NULL) {
        int len = snprintf(name, sizeof name, "%s%s%s", folder, folder[0] != '\0' ? "/" : "",
                           entry->d_name);
        if (is_part(entry->d_name, strlen(entry->d_name)) && (size_t)len < sizeof name)
            add_name(names, name, depth);
    }
    if (open != NULL)
        closedir(open);
}

static struct slice zone_file_name_at(const void *arg, size_t i)
{
    const struct names *names = arg;
    return slice_str(names->at[i]);
}

static void say_unknown(struct slice name, char *why, size_t why_size)
{
    struct names names = {NULL, 0};
    add_folder(&names, "", 1);
    struct slice near = near_name(name, names.n, zone_file_name_at, &names);
    if (names.n == 0)
        why_set(why, why_size, "%s has no time zones: install the package tzdata", database());
    else if (near.len > 0)
        why_set(why, why_size, "unknown time zone \"%.*s\" (did you mean %.*s?)", WHY_SLICE(name),
                WHY_SLICE(near));
    else
        why_set(
            why, why_size,
            "unknown time zone \"%.*s\": write a name of the time zone database, like Europe/Berlin",
            WHY_SLICE(name));
    free(names.at);
}

/* ---- the database: files ---- */

/*
 * Reads at most `size` bytes of a file. Returns the number of bytes read; -1: the file cannot be
 * read (errno), or is no regular file.
 */
static ssize_t zone_file_read_file(const char *path, char *out, size_t size)
{
    size_t len = 0;
    ssize_t got = 1;
    struct stat is;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -1;
    errno = EINVAL;
    if (fstat(fd, &is) != 0 || !S_ISREG(is.st_mode))
        got = -1;
    while (got > 0 && len < size) {
        got = read(fd, out + len, size - len);
        len += got > 0 ? (size_t)got : 0;
    }
    close(fd);
    return got < 0 ? -1 : (ssize_t)len;
}

struct zone *zone_load(struct slice name, char *why, size_t why_size)
{
    char path[PATH_MAX];
    struct zone *zone = NULL;
    if (!zone_file_is_name(name)) {
        say_unknown(name, why, why_size);
        return NULL;
    }
    if ((size_t)snprintf(path, sizeof path, "%s/%.*s", database(), (int)name.len, name.at) >=
        sizeof path) {
        why_set(why, why_size, "TZDIR is too long");
        return NULL;
    }
    char *file = mem_alloc(FILE_BYTES_MAX);
    ssize_t len = zone_file_read_file(path, file, FILE_BYTES_MAX);
    int error = errno;
    if (len >= 0)
        zone = zone_parse(name, slice_of(file, (size_t)len), why, why_size);
    else if (error == EACCES)
        why_set(why, why_size, "%s: %s", path, strerror(error));
    else
        say_unknown(name, why, why_size);
    free(file);
    return zone;
}
