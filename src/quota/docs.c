/*
 * The types are those of Redis 7.0: redis-cli aborts if a summary is not a bulk string, or if a
 * flag is a bulk string. Clients need names, arity, flags, the positions of keys, and the hints and
 * help of redis-cli. Tips and key specifications are therefore empty, and an argument has no
 * arguments of its own.
 */
#include "quota/docs.h"

#include "base/slice.h"

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

/* Removes "..." at the end of brackets, which repeats their content. True if there were dots. */
static bool drop_dots(struct slice *text)
{
    bool has_dots = text->len > 3 && memcmp(text->at + text->len - 3, "...", 3) == 0;
    if (has_dots)
        *text = split_trim(slice_of(text->at, text->len - 3));
    return has_dots;
}

/* Takes the next argument off *rest. False: there is none. */
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
