/* Redis' elements are copied unchanged: only the header of a reply is written anew. */
#include "quota/command_merge.h"

#include "resp/argv.h"
#include "resp/element.h"

/* ---- entries for weir's own commands ---- */

/*
 * The types are as in Redis 7.0: redis-cli aborts if a summary is not a bulk string, or if a flag
 * is a bulk string. Clients need names, arity, flags, the positions of keys, and the hints and help
 * of redis-cli. Tips and key specifications are therefore empty, and an argument has no arguments
 * of its own.
 */

#define SINCE "0.1.0" /* version of weir */
#define GROUP "limit" /* COMMAND writes "@limit" */
#define NAME_ROOM 256 /* bytes of an argument; the longest in own.def has 128 */

bool docs_is_top(const struct own *own)
{
    return strchr(own->name, '|') == NULL;
}

/* Returns the next subcommand from row *i on; NULL: no more. */
static const struct own *next_subcommand(const struct own *container, size_t *i)
{
    size_t len = strlen(container->name);
    while (*i < own_count()) {
        const struct own *own = own_row((*i)++);
        if (strncmp(own->name, container->name, len) == 0 && own->name[len] == '|')
            return own;
    }
    return NULL;
}

static size_t subcommand_count(const struct own *container)
{
    size_t count = 0;
    for (size_t i = 0; next_subcommand(container, &i) != NULL;)
        count++;
    return count;
}

/* ---- COMMAND LIST, COMMAND INFO ---- */

void docs_name(struct build *build, const struct own *own)
{
    build_bulk_str(build, own->name);
}

static void flags(struct build *build, const struct own *own)
{
    bool has_keys = own->first_key > 0;
    build_set(build, (has_keys ? 3U : 4U) + own->is_operators);
    build_raw(build, SLICE("+noscript\r\n+no_multi\r\n"));
    build_raw(build, has_keys ? SLICE("+write\r\n") : SLICE("+loading\r\n+stale\r\n"));
    if (own->is_operators)
        build_raw(build, SLICE("+admin\r\n"));
}

void docs_info(struct build *build, const struct own *own)
{
    const struct own *sub;
    build_array(build, 10);
    build_bulk_str(build, own->name);
    build_int(build, own->arity);
    flags(build, own);
    build_int(build, own->first_key);
    build_int(build, own->last_key);
    build_int(build, own->key_step);
    build_set(build, 1);
    build_status(build, SLICE("@" GROUP));
    build_set(build, 0); /* tips */
    build_set(build, 0); /* key specifications */
    build_array(build, subcommand_count(own));
    for (size_t i = 0; (sub = next_subcommand(own, &i)) != NULL;)
        docs_info(build, sub);
}

/* ---- COMMAND DOCS: the arguments ---- */

/* One argument in own.def's notation: a word, or brackets with their content. */
struct argument {
    struct slice text; /* without the brackets and the dots */
    bool is_optional, is_multiple;
};

static bool docs_has(struct slice text, char byte)
{
    return memchr(text.at, byte, text.len) != NULL;
}

/* Removes "..." at the end of brackets, which repeats their content. True if the text had dots. */
static bool drop_dots(struct slice *text)
{
    bool has_dots = text->len > 3 && memcmp(text->at + text->len - 3, "...", 3) == 0;
    if (has_dots)
        *text = split_trim(slice_of(text->at, text->len - 3));
    return has_dots;
}

/* Takes the next argument off *rest. False: *rest has no argument left. */
static bool next_argument(struct slice *rest, struct argument *out)
{
    struct slice dots;
    size_t len = 0;
    size_t depth = 0;
    *rest = split_trim(*rest);
    for (; len < rest->len && (depth > 0 || rest->at[len] != ' '); len++) {
        depth += rest->at[len] == '[';
        depth -= rest->at[len] == ']';
    }
    struct slice text = split_take(rest, len);
    bool is_optional = docs_has(slice_of(text.at, text.len > 0), '[');
    if (is_optional)
        text = slice_of(text.at + 1, text.len - 2);
    bool is_multiple = drop_dots(&text);
    struct slice after = *rest;
    if (split_word(&after, &dots) && slice_eq(dots, SLICE("..."))) {
        is_multiple = true;
        *rest = after;
    }
    *out = (struct argument){text, is_optional, is_multiple};
    return len > 0;
}

/* Writes "rate:string [BURST n:integer]" without the types. */
static void put_name(struct build *build, struct slice text)
{
    char name[NAME_ROOM];
    size_t len = 0;
    bool is_type = false;
    for (size_t i = 0; i < text.len && len < sizeof name; i++) {
        is_type = text.at[i] == ':' || (is_type && text.at[i] >= 'a' && text.at[i] <= 'z');
        if (!is_type)
            name[len++] = text.at[i];
    }
    build_bulk(build, slice_of(name, len));
}

static void docs_pair(struct build *build, const char *name, struct slice value)
{
    build_bulk_str(build, name);
    build_bulk(build, value);
}

/* Writes "TOKEN", "name:type" or "TOKEN name:type". Any other text is a string with that name. */
static void put_argument(struct build *build, const struct argument *argument)
{
    struct slice name = argument->text;
    struct slice type = SLICE("string");
    struct slice token;
    split_word(&name, &token);
    name = split_trim(name);
    if (docs_has(token, ':') || docs_has(token, '|') || docs_has(name, ' ')) {
        name = argument->text;
        token = SLICE("");
    } else if (name.len == 0) {
        name = token;
        type = SLICE("pure-token");
    }
    const char *colon = docs_has(name, ' ') ? NULL : memchr(name.at, ':', name.len);
    if (colon != NULL)
        type = slice_of(colon + 1, (size_t)(name.at + name.len - colon) - 1);
    bool has_flags = argument->is_optional || argument->is_multiple;
    build_map(build, 2U + (token.len > 0) + has_flags);
    build_bulk_str(build, "name");
    put_name(build, name);
    docs_pair(build, "type", type);
    if (token.len > 0)
        docs_pair(build, "token", token);
    if (!has_flags)
        return;
    build_bulk_str(build, "flags");
    build_set(build, (size_t)argument->is_optional + argument->is_multiple);
    build_raw(build, argument->is_optional ? SLICE("+optional\r\n") : SLICE(""));
    build_raw(build, argument->is_multiple ? SLICE("+multiple\r\n") : SLICE(""));
}

static void put_arguments(struct build *build, struct slice text)
{
    struct argument argument;
    struct slice rest = text;
    size_t count = 0;
    while (next_argument(&rest, &argument))
        count++;
    build_bulk_str(build, "arguments");
    build_array(build, count);
    while (next_argument(&text, &argument))
        put_argument(build, &argument);
}

/* ---- COMMAND DOCS ---- */

void docs_entry(struct build *build, const struct own *own)
{
    const struct own *sub;
    size_t count = subcommand_count(own);
    struct slice arguments = slice_str(own->arguments);
    build_bulk_str(build, own->name);
    build_map(build, 3U + (arguments.len > 0) + (count > 0));
    docs_pair(build, "summary", slice_str(own->summary));
    docs_pair(build, "since", SLICE(SINCE));
    docs_pair(build, "group", SLICE(GROUP));
    if (arguments.len > 0)
        put_arguments(build, arguments);
    if (count == 0)
        return;
    build_bulk_str(build, "subcommands");
    build_map(build, count);
    for (size_t i = 0; (sub = next_subcommand(own, &i)) != NULL;)
        docs_entry(build, sub);
}

/* ---- merging ---- */

/* weir's commands that a request asks about. */
struct asked {
    struct argv_walk names; /* the words behind the subcommand; none: all commands */
    bool is_all;
    bool has_subcommands; /* the list of all commands includes subcommands */
    bool has_cell;        /* CL.THROTTLE is one of weir's commands */
    size_t row;           /* if is_all: index of the next command to look at */
};

static bool is_shown(const struct asked *asked, const struct own *own)
{
    return asked->has_cell || strcmp(own->name, "cl.throttle") != 0;
}

/* NULL: weir has no command of that name. */
static const struct own *command_merge_find(const struct asked *asked, struct slice name)
{
    const struct own *own = own_find(name);
    return own != NULL && is_shown(asked, own) ? own : NULL;
}

static bool is_in_all(const struct asked *asked, const struct own *own)
{
    return is_shown(asked, own) && (asked->has_subcommands || docs_is_top(own));
}

/* Returns the next command that the request asks about; NULL: no more. */
static const struct own *command_merge_next(struct asked *asked)
{
    const struct own *own = NULL;
    struct slice name;
    while (own == NULL && argv_next(&asked->names, &name))
        own = command_merge_find(asked, name);
    while (own == NULL && asked->is_all && asked->row < own_count())
        if (is_in_all(asked, own_row(asked->row++)))
            own = own_row(asked->row - 1);
    return own;
}

static int64_t command_merge_count_of(struct asked asked)
{
    int64_t count = 0;
    while (command_merge_next(&asked) != NULL)
        count++;
    return count;
}

static bool is_good(const struct build *out)
{
    return !out->is_broken && out->len <= COMMAND_MERGE_MAX;
}

/* Appends weir's commands to the reply. `entry` writes one element for each command, or a pair. */
static bool command_merge_append(struct slice reply, struct asked *asked,
                                 void (*entry)(struct build *, const struct own *), bool is_pair,
                                 struct build *out)
{
    struct element_head head;
    const struct own *own;
    if (!element_head(reply, &head) || head.number < 0 || head.number > SCAN_COUNT_MAX ||
        (head.type != '*' && head.type != (is_pair ? '%' : '~')))
        return false;
    build_header(out, head.type,
                 head.number +
                     command_merge_count_of(*asked) * (is_pair && head.type == '*' ? 2 : 1));
    build_raw(out, head.rest);
    while (is_good(out) && (own = command_merge_next(asked)) != NULL)
        entry(out, own);
    return true;
}

/* COMMAND INFO with names: writes an entry for each name, in the order of the names. */
static bool command_merge_replace(struct slice reply, struct asked *asked, struct build *out)
{
    struct element_head head;
    struct slice name;
    struct slice element;
    if (!element_head(reply, &head) || head.type != '*' ||
        head.number != (int64_t)asked->names.left)
        return false;
    build_header(out, head.type, head.number);
    while (is_good(out) && argv_next(&asked->names, &name)) {
        if (!element_next(&head.rest, &element))
            return false;
        const struct own *own = command_merge_find(asked, name);
        if (own != NULL)
            docs_info(out, own);
        else
            build_raw(out, element);
    }
    return true;
}

static bool info(struct slice reply, struct asked *asked, struct build *out)
{
    return asked->is_all ? command_merge_append(reply, asked, docs_info, false, out)
                         : command_merge_replace(reply, asked, out);
}

/* Redis omits the names that it does not know. */
static bool docs(struct slice reply, struct asked *asked, struct build *out)
{
    return command_merge_append(reply, asked, docs_entry, true, out);
}

/*
 * Adds weir's commands unless the request has a filter. Only Redis applies filters, and only to its
 * own commands.
 */
static bool command_merge_list(struct slice reply, struct asked *asked, struct build *out)
{
    asked->has_subcommands = true;
    return asked->is_all && command_merge_append(reply, asked, docs_name, false, out);
}

static bool count(struct slice reply, struct asked *asked, struct build *out)
{
    struct element_head head;
    if (!element_head(reply, &head) || head.type != ':' || head.number < 0 ||
        head.number > SCAN_COUNT_MAX)
        return false;
    build_int(out, head.number + command_merge_count_of(*asked));
    return true;
}

/* False: leave the reply unchanged. */
typedef bool (*merger)(struct slice reply, struct asked *asked, struct build *out);

static const struct {
    struct slice name;
    merger merge;
} subcommands[] = {{{"info", 4}, info},
                   {{"docs", 4}, docs},
                   {{"list", 4}, command_merge_list},
                   {{"count", 5}, count}};

/* COMMAND alone is COMMAND INFO. NULL: another request. */
static merger command_merge_read_request(struct slice request, bool has_cell, struct asked *asked)
{
    struct slice command;
    struct slice sub = SLICE("info");
    *asked = (struct asked){.has_cell = has_cell};
    argv_walk_init(&asked->names, request);
    if (!argv_next(&asked->names, &command) || !slice_eq_nocase(command, SLICE("command")))
        return NULL;
    asked->is_all = !argv_next(&asked->names, &sub) || asked->names.left == 0;
    for (size_t i = 0; i < sizeof subcommands / sizeof subcommands[0]; i++)
        if (slice_eq_nocase(subcommands[i].name, sub))
            return subcommands[i].merge;
    return NULL;
}

bool command_merge(struct slice request, struct slice reply, bool has_cell, struct build *out)
{
    struct asked asked;
    merger merge = command_merge_read_request(request, has_cell, &asked);
    return merge != NULL && merge(reply, &asked, out) && is_good(out);
}

/* Writes the reply of a server without any commands. */
static void build_none(struct build *none, merger merge, size_t n_names)
{
    if (merge == docs) {
        build_map(none, 0);
    } else if (merge == count) {
        build_int(none, 0);
    } else {
        build_array(none, merge == info ? n_names : 0);
        for (size_t i = 0; merge == info && i < n_names; i++)
            build_nil(none);
    }
}

void command_merge_alone(struct slice request, bool has_cell, struct build *out)
{
    struct asked asked;
    struct build none;
    merger merge = command_merge_read_request(request, has_cell, &asked);
    build_init(&none, out->is_resp3);
    build_none(&none, merge, asked.names.left);
    out->is_broken |= none.is_broken;
    struct slice reply = slice_of(none.at, none.len);
    if (merge == NULL || !merge(reply, &asked, out) || !is_good(out)) {
        out->len = 0;
        build_raw(out, reply);
    }
    build_fini(&none);
}
