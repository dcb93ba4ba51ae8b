/*
 * Elements are found by the scanner and copied whole; only headers of aggregates are parsed and written anew.
 */
#include "quota/splice.h"

#include <stdint.h>
#include <stdio.h>

#include "base/glob.h"
#include "base/num.h"
#include "limit/command/own.h"
#include "quota/docs.h"
#include "resp/argv.h"
#include "resp/emit.h"
#include "resp/scan.h"

#define PATTERN_MAX 256 /* a longer one is for nobody's names */

/* The state: the request, and the part of the reply not read yet. */
struct splice {
    struct argv_walk words; /* behind the subcommand */
    struct slice rest;
    struct build *out;
    bool has_cell; /* CL.THROTTLE is weir's */
};

static bool is_shown(const struct splice *splice, const struct own *own)
{
    return splice->has_cell || own->first_key != 1;
}

/* NULL: there is none of that name. */
static const struct own *find_shown(const struct splice *splice, struct slice name)
{
    const struct own *own = own_find(name);
    return own != NULL && is_shown(splice, own) ? own : NULL;
}

static bool is_top(const struct splice *splice, size_t row)
{
    return docs_is_top(own_row(row)) && is_shown(splice, own_row(row));
}

static int64_t top_count(const struct splice *splice)
{
    return docs_top_count() - !splice->has_cell;
}

/* ---- reading the reply ---- */

static bool take_head(struct slice *rest, char *type, int64_t *count)
{
    const char *end = rest->len >= 2 ? memmem(rest->at, rest->len, "\r\n", 2) : NULL;
    if (end == NULL || end == rest->at || !num_parse(slice_of(rest->at + 1, (size_t)(end - rest->at) - 1), count) ||
        *count > SCAN_COUNT_MAX)
        return false;
    *type = rest->at[0];
    size_t used = (size_t)(end - rest->at) + 2;
    *rest = slice_of(rest->at + used, rest->len - used);
    return true;
}

static bool take_element(struct slice *rest, struct slice *element)
{
    struct reply_scan scan = {0};
    size_t used;
    if (rest->len == 0 || reply_scan(&scan, rest->at, rest->len, &used) != SCAN_FRAME)
        return false;
    *element = slice_of(rest->at, used);
    *rest = slice_of(rest->at + used, rest->len - used);
    return true;
}

static bool is_nil(struct slice element)
{
    return slice_eq(element, SLICE("_\r\n")) || slice_eq(element, SLICE("$-1\r\n")) ||
           slice_eq(element, SLICE("*-1\r\n"));
}

/* Is it the bulk `name`, in any case? */
static bool is_bulk(struct slice element, struct slice name)
{
    char type;
    int64_t len;
    return take_head(&element, &type, &len) && type == '$' && len >= 0 && (uint64_t)len == name.len &&
           element.len == name.len + 2 && slice_eq_nocase(slice_of(element.at, name.len), name);
}

/* How many elements this entry of COMMAND has; -1 for what is none. */
static int64_t elements_of(struct slice entry)
{
    char type;
    int64_t count;
    return take_head(&entry, &type, &count) && type == '*' ? count : -1;
}

/* ---- writing the new one ---- */

static void put_head(struct build *out, char type, int64_t n)
{
    char head[EMIT_HEADER_MAX];
    build_raw(out, slice_of(head, emit_header(head, type, n)));
}

static bool is_good(const struct build *out)
{
    return !out->is_broken && out->len <= SPLICE_MAX;
}

/* ---- COMMAND, COMMAND INFO ---- */

static bool all_info(struct splice *splice)
{
    char type;
    int64_t count;
    struct slice first;
    struct slice entries;
    if (!take_head(&splice->rest, &type, &count) || type != '*' || count <= 0)
        return false; /* nothing at all: Redis 6.2 takes INFO without names at its word */
    entries = splice->rest;
    if (!take_element(&splice->rest, &first) || elements_of(first) < 1)
        return false;
    put_head(splice->out, type, count + top_count(splice));
    build_raw(splice->out, entries);
    for (size_t i = 0; i < own_count(); i++)
        if (is_top(splice, i))
            docs_info(splice->out, own_row(i), elements_of(first));
    return true;
}

/* As many elements as Redis gives its own commands, if the reply has one of these. */
static int64_t usual_elements(struct slice entries)
{
    struct slice entry;
    while (take_element(&entries, &entry))
        if (elements_of(entry) > 0)
            return elements_of(entry);
    return DOCS_INFO_MAX;
}

static bool some_info(struct splice *splice)
{
    char type;
    int64_t count;
    if (!take_head(&splice->rest, &type, &count) || type != '*' || count != (int64_t)splice->words.left)
        return false;
    int64_t elements = usual_elements(splice->rest);
    put_head(splice->out, type, count);
    struct slice name;
    while (argv_next(&splice->words, &name) && is_good(splice->out)) {
        struct slice entry;
        if (!take_element(&splice->rest, &entry))
            return false;
        const struct own *own = is_nil(entry) ? find_shown(splice, name) : NULL;
        if (own != NULL)
            docs_info(splice->out, own, elements);
        else
            build_raw(splice->out, entry);
    }
    return splice->rest.len == 0;
}

static bool info(struct splice *splice)
{
    return splice->words.left == 0 ? all_info(splice) : some_info(splice);
}

/* ---- COMMAND DOCS ---- */

/* A map, or what RESP2 has for one; *count is in pairs. */
static bool take_map(struct splice *splice, char *type, int64_t *count)
{
    if (!take_head(&splice->rest, type, count) || *type != (splice->out->is_resp3 ? '%' : '*') || *count < 0)
        return false;
    if (*type == '*' && *count % 2 != 0)
        return false;
    *count /= *type == '*' ? 2 : 1;
    return true;
}

static void put_map(struct build *out, char type, int64_t pairs)
{
    put_head(out, type, type == '*' ? 2 * pairs : pairs);
}

static bool all_docs(struct splice *splice)
{
    char type;
    int64_t count;
    if (!take_map(splice, &type, &count))
        return false;
    put_map(splice->out, type, count + top_count(splice));
    build_raw(splice->out, splice->rest);
    for (size_t i = 0; i < own_count(); i++)
        if (is_top(splice, i))
            docs_entry(splice->out, own_row(i));
    return true;
}

/* Is the next pair about `name`? */
static bool is_next(struct slice rest, struct slice name)
{
    struct slice key;
    return rest.len > 0 && rest.at[0] == '$' && take_element(&rest, &key) && is_bulk(key, name);
}

static bool copy_pair(struct splice *splice)
{
    struct slice key;
    struct slice value;
    if (!take_element(&splice->rest, &key) || !take_element(&splice->rest, &value))
        return false;
    build_raw(splice->out, key);
    build_raw(splice->out, value);
    return true;
}

/* How many of the names are ours and not in the reply; as docs_of_names goes through them. */
static int64_t count_missing(struct splice splice)
{
    int64_t missing = 0;
    struct slice name;
    struct slice element;
    while (argv_next(&splice.words, &name)) {
        if (!is_next(splice.rest, name))
            missing += find_shown(&splice, name) != NULL;
        else if (!take_element(&splice.rest, &element) || !take_element(&splice.rest, &element))
            return 0;
    }
    return missing;
}

/*
 * Redis leaves out what it does not know, and a command that was renamed answers by another name: what is left over in
 * the end follows all others.
 */
static bool some_docs(struct splice *splice)
{
    char type;
    int64_t count;
    if (!take_map(splice, &type, &count))
        return false;
    int64_t missing = count_missing(*splice);
    if (missing == 0)
        return false;
    put_map(splice->out, type, count + missing);
    struct slice name;
    while (argv_next(&splice->words, &name) && is_good(splice->out)) {
        const struct own *own = find_shown(splice, name);
        if (is_next(splice->rest, name)) {
            if (!copy_pair(splice))
                return false;
        } else if (own != NULL) {
            docs_entry(splice->out, own);
        }
    }
    build_raw(splice->out, splice->rest);
    return true;
}

static bool docs(struct splice *splice)
{
    return splice->words.left == 0 ? all_docs(splice) : some_docs(splice);
}

/* ---- COMMAND LIST ---- */

/* FILTERBY kind value; kind is empty where nothing filters. */
struct filter {
    struct slice kind;
    char pattern[PATTERN_MAX];
    size_t pattern_len;
};

/* Redis lists only where there is one at most. False: a syntax error, or too long to be for us. */
static bool take_filter(struct argv_walk *words, struct filter *filter)
{
    struct slice filterby;
    struct slice value;
    filter->kind = slice_of("", 0);
    if (!argv_next(words, &filterby))
        return true;
    if (!slice_eq_nocase(filterby, SLICE("filterby")) || !argv_next(words, &filter->kind) ||
        !argv_next(words, &value) || value.len > PATTERN_MAX)
        return false;
    for (size_t i = 0; i < value.len; i++)
        filter->pattern[i] = ascii_lower(value.at[i]);
    filter->pattern_len = value.len;
    return true;
}

static bool is_listed(const struct splice *splice, const struct own *own, const struct filter *filter)
{
    struct slice pattern = slice_of(filter->pattern, filter->pattern_len);
    if (!is_shown(splice, own))
        return false;
    if (filter->kind.len == 0)
        return true;
    if (slice_eq_nocase(filter->kind, SLICE("aclcat")))
        return slice_eq(pattern, SLICE(DOCS_CATEGORY));
    return slice_eq_nocase(filter->kind, SLICE("pattern")) && glob_is_closed(pattern) &&
           glob_match(pattern, slice_str(own->name));
}

static bool list(struct splice *splice)
{
    char type;
    int64_t count;
    struct filter filter;
    if (!take_head(&splice->rest, &type, &count) || (type != '*' && type != '~') || count < 0 ||
        !take_filter(&splice->words, &filter))
        return false;
    int64_t ours = 0;
    for (size_t i = 0; i < own_count(); i++)
        ours += is_listed(splice, own_row(i), &filter);
    put_head(splice->out, type, count + ours);
    build_raw(splice->out, splice->rest);
    for (size_t i = 0; i < own_count(); i++)
        if (is_listed(splice, own_row(i), &filter))
            build_bulk_str(splice->out, own_row(i)->name);
    return true;
}

/* ---- COMMAND COUNT ---- */

static bool count(struct splice *splice)
{
    char type;
    int64_t number;
    if (!take_head(&splice->rest, &type, &number) || type != ':' || number < 0 || number > INT32_MAX)
        return false;
    build_int(splice->out, number + top_count(splice));
    return true;
}

/* ---- COMMAND GETKEYS, GETKEYSANDFLAGS ---- */

/* Find the command by its first two words. */
static const struct own *find_call(const struct splice *splice, struct argv_walk words)
{
    struct slice name;
    struct slice sub;
    if (!argv_next(&words, &name))
        return NULL;
    const struct own *own = find_shown(splice, name);
    if (own == NULL || !docs_is_top(own) || !docs_is_container(own) || !argv_next(&words, &sub))
        return own != NULL && docs_is_top(own) ? own : NULL;
    char full[PATTERN_MAX];
    if (sub.len > sizeof full / 2)
        return NULL;
    int len = snprintf(full, sizeof full, "%s|%.*s", own->name, (int)sub.len, sub.at);
    return own_find(slice_of(full, (size_t)len));
}

static bool call_keys(struct splice *splice, bool with_flags)
{
    const struct own *own = find_call(splice, splice->words);
    if (own == NULL || !slice_eq(splice->rest, SLICE("-ERR Invalid command specified\r\n")))
        return false;
    docs_keys(splice->out, own, splice->words, with_flags);
    return true;
}

static bool getkeys(struct splice *splice)
{
    return call_keys(splice, false);
}

static bool getkeysandflags(struct splice *splice)
{
    return call_keys(splice, true);
}

/* ---- all of them ---- */

static const struct {
    struct slice name;
    bool (*splice)(struct splice *splice);
} subcommands[] = {
    {{"info", 4}, info},   {{"docs", 4}, docs},       {{"list", 4}, list},
    {{"count", 5}, count}, {{"getkeys", 7}, getkeys}, {{"getkeysandflags", 15}, getkeysandflags},
};

bool splice_command(struct slice request, struct slice reply, bool has_cell, struct build *out)
{
    struct splice splice = {.rest = reply, .out = out, .has_cell = has_cell};
    struct slice command;
    struct slice sub;
    argv_walk_init(&splice.words, request);
    if (!argv_next(&splice.words, &command) || !slice_eq_nocase(command, SLICE("command")))
        return false;
    if (!argv_next(&splice.words, &sub))
        return all_info(&splice) && is_good(out);
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++)
        if (slice_eq_nocase(subcommands[i].name, sub))
            return subcommands[i].splice(&splice) && is_good(out);
    return false;
}

/* ---- weir's own commands alone ---- */

static void all_own(const struct splice *splice)
{
    put_head(splice->out, '*', top_count(splice));
    for (size_t i = 0; i < own_count(); i++)
        if (is_top(splice, i))
            docs_info(splice->out, own_row(i), DOCS_INFO_MAX);
}

/* What a server without any commands would answer. */
static void nothing(struct build *out, struct slice sub, size_t n_names)
{
    if (slice_eq_nocase(sub, SLICE("docs"))) {
        build_map(out, 0);
    } else if (slice_eq_nocase(sub, SLICE("count"))) {
        build_int(out, 0);
    } else {
        build_array(out, n_names);
        for (size_t i = 0; i < n_names; i++)
            build_nil(out);
    }
}

void splice_alone(struct slice request, bool has_cell, struct build *out)
{
    struct splice splice = {.out = out, .has_cell = has_cell};
    struct build none;
    struct slice command;
    struct slice sub = SLICE("");
    argv_walk_init(&splice.words, request);
    bool is_whole = argv_next(&splice.words, &command) && !argv_next(&splice.words, &sub);
    bool is_info = slice_eq_nocase(sub, SLICE("info"));
    if (is_whole || (is_info && splice.words.left == 0)) {
        all_own(&splice);
        return;
    }
    build_init(&none, out->is_resp3);
    nothing(&none, sub, is_info ? splice.words.left : 0);
    out->is_broken |= none.is_broken;
    if (!splice_command(request, slice_of(none.at, none.len), has_cell, out)) {
        out->len = 0;
        build_raw(out, slice_of(none.at, none.len));
    }
    build_fini(&none);
}
