/*
 * Writes the entries in the types that Redis 7.0 uses: redis-cli aborts if a summary is not a bulk string, or a flag
 * is.
 */
#include "quota/docs.h"

#include <stddef.h>

#include "base/split.h"

#define SINCE "0.1.0" /* of weir */
#define NAME_MAX_SHOWN 64

bool docs_is_top(const struct own *own)
{
    return strchr(own->name, '|') == NULL;
}

int64_t docs_top_count(void)
{
    int64_t count = 0;
    for (size_t i = 0; i < own_count(); i++)
        count += docs_is_top(own_row(i));
    return count;
}

static bool is_subcommand_of(const struct own *sub, const struct own *container)
{
    size_t len = strlen(container->name);
    return strncmp(sub->name, container->name, len) == 0 && sub->name[len] == '|';
}

static size_t subcommand_count(const struct own *container)
{
    size_t count = 0;
    for (size_t i = 0; i < own_count(); i++)
        count += is_subcommand_of(own_row(i), container);
    return count;
}

bool docs_is_container(const struct own *own)
{
    return subcommand_count(own) > 0;
}

/* ---- COMMAND INFO ---- */

static void set_of(struct build *build, const char *const *words, size_t n)
{
    build_set(build, n);
    for (size_t i = 0; i < n; i++)
        build_status(build, slice_str(words[i]));
}

/* Are its keys elsewhere, or are there more of them, than its first key, last key and step say? */
static bool moves_keys(const struct own *own)
{
    return own_has_parts(own) || own_may_name(own);
}

/* A container has none, as in Redis: what can be said of it is said of its subcommands. */
static void flags(struct build *build, const struct own *own)
{
    const char *words[7];
    size_t n = 0;
    bool has_keys = own->first_key > 0;
    if (!docs_is_container(own)) {
        if (has_keys)
            words[n++] = "write";
        if (own->is_operators)
            words[n++] = "admin";
        words[n++] = "noscript";
        if (!has_keys) {
            words[n++] = "loading";
            words[n++] = "stale";
        }
        words[n++] = "no_multi";
        if (moves_keys(own))
            words[n++] = "movablekeys";
    }
    set_of(build, words, n);
}

/* incomplete: there may be more keys than the specification says. */
static void key_flags(struct build *build, bool is_incomplete)
{
    static const char *const words[] = {"RW", "access", "update", "incomplete"};
    set_of(build, words, is_incomplete ? 4 : 3);
}

static void number(struct build *build, const char *name, int64_t value)
{
    build_bulk_str(build, name);
    build_int(build, value);
}

static void kind(struct build *build, const char *type, size_t numbers)
{
    build_map(build, 2);
    build_bulk_str(build, "type");
    build_bulk_str(build, type);
    build_bulk_str(build, "spec");
    build_map(build, numbers);
}

static void key_specs(struct build *build, const struct own *own)
{
    build_set(build, own->first_key > 0);
    if (own->first_key == 0)
        return;
    build_map(build, 3);
    build_bulk_str(build, "flags");
    key_flags(build, moves_keys(own));
    build_bulk_str(build, "begin_search");
    kind(build, "index", 1);
    number(build, "index", own->first_key);
    build_bulk_str(build, "find_keys");
    kind(build, "range", 3);
    number(build, "lastkey", own->last_key < 0 ? own->last_key : own->last_key - own->first_key);
    number(build, "keystep", own->key_step);
    number(build, "limit", 0);
}

static void subcommands(struct build *build, const struct own *own)
{
    size_t count = subcommand_count(own);
    if (count == 0) {
        build_set(build, 0);
        return;
    }
    build_array(build, count);
    for (size_t i = 0; i < own_count(); i++)
        if (is_subcommand_of(own_row(i), own))
            docs_info(build, own_row(i), DOCS_INFO_MAX);
}

void docs_info(struct build *build, const struct own *own, int64_t elements)
{
    static const char *const categories[] = {"@" DOCS_CATEGORY};
    bool is_old = elements < DOCS_INFO_MAX;
    build_array(build, is_old ? DOCS_INFO_OLD : DOCS_INFO_MAX);
    build_bulk_str(build, own->name);
    build_int(build, own->arity);
    flags(build, own);
    build_int(build, own->first_key);
    build_int(build, own->last_key);
    build_int(build, own->key_step);
    set_of(build, categories, 1);
    if (is_old)
        return;
    build_set(build, 0); /* tips */
    key_specs(build, own);
    subcommands(build, own);
}

/* ---- COMMAND GETKEYS ---- */

static bool is_arity(const struct own *own, uint32_t argc)
{
    return own->arity >= 0 ? argc == (uint32_t)own->arity : argc >= (uint32_t)-own->arity;
}

/* The words of a call, and where its next key is: at each step, or two words behind an AND. */
struct key_walk {
    const struct own *own;
    struct argv_walk words;
    int64_t index, key, last; /* of words, from 0; of the next key; and of the last one, if that can be told */
};

static struct key_walk keys_of(const struct own *own, struct argv_walk words)
{
    int64_t last = own->last_key < 0 ? (int64_t)words.left + own->last_key : own->last_key;
    bool has_parts = own_has_parts(own);
    return (struct key_walk){own, words, 0, own->first_key, has_parts ? (int64_t)words.left - 1 : last};
}

static bool next_key(struct key_walk *walk, struct slice *key)
{
    struct slice word;
    bool has_parts = own_has_parts(walk->own);
    while (argv_next(&walk->words, &word)) {
        int64_t index = walk->index++;
        if (has_parts && index > walk->key && slice_eq_nocase(word, SLICE("and")))
            walk->key = index + 2;
        if (own_may_name(walk->own) && index + 1 == walk->own->first_key && slice_eq_nocase(word, SLICE("check")))
            walk->last = ++walk->key;
        if (index != walk->key || index > walk->last)
            continue;
        walk->key += has_parts ? 0 : walk->own->key_step;
        *key = word;
        return true;
    }
    return false;
}

static void list_keys(struct build *build, const struct own *own, struct argv_walk words, bool with_flags)
{
    struct key_walk walk = keys_of(own, words);
    struct slice key;
    size_t n = 0;
    while (next_key(&walk, &key))
        n++;
    if (n == 0) {
        build_error(build, SLICE("ERR Invalid arguments specified for command"));
        return;
    }
    build_array(build, n);
    walk = keys_of(own, words);
    while (next_key(&walk, &key)) {
        if (with_flags)
            build_array(build, 2);
        build_bulk(build, key);
        if (with_flags)
            key_flags(build, false);
    }
}

void docs_keys(struct build *build, const struct own *own, struct argv_walk words, bool with_flags)
{
    if (own->first_key <= 0)
        build_error(build, SLICE("ERR The command has no key arguments"));
    else if (!is_arity(own, words.left))
        build_error(build, SLICE("ERR Invalid number of arguments specified for command"));
    else
        list_keys(build, own, words, with_flags);
}

/* ---- COMMAND DOCS: the arguments ---- */

/*
 * One argument in own.def's notation. A TOKEN with a value behind it is one argument, and so are brackets; "..." at
 * the end of brackets repeats all that is in them.
 */
struct argument {
    struct slice token; /* empty: none */
    struct slice body;  /* a word, or of a block its arguments */
    bool is_block, is_optional, is_multiple;
};

static bool has(struct slice text, char byte)
{
    return memchr(text.at, byte, text.len) != NULL;
}

static bool take_dots(struct slice *rest)
{
    *rest = split_trim(*rest);
    if (rest->len < 3 || memcmp(rest->at, "...", 3) != 0)
        return false;
    split_take(rest, 3);
    return true;
}

static bool drop_dots(struct slice *inner)
{
    *inner = split_trim(*inner);
    if (inner->len < 3 || memcmp(inner->at + inner->len - 3, "...", 3) != 0)
        return false;
    inner->len -= 3;
    return true;
}

/* What is in the brackets that *rest begins with; *rest goes behind them. */
static struct slice take_brackets(struct slice *rest)
{
    size_t depth = 0;
    size_t len = 0;
    do {
        depth += rest->at[len] == '[';
        depth -= rest->at[len] == ']';
        len++;
    } while (depth > 0 && len < rest->len);
    struct slice all = split_take(rest, len);
    return slice_of(all.at + 1, all.len - 2);
}

static bool next_argument(struct slice *rest, struct argument *out);

static void bracketed(struct slice inner, struct argument *out)
{
    bool repeats = drop_dots(&inner);
    struct slice rest = inner;
    if (!next_argument(&rest, out) || split_trim(rest).len > 0)
        *out = (struct argument){.body = inner, .is_block = true};
    out->is_optional = true;
    out->is_multiple |= repeats;
}

static void worded(struct slice *rest, struct argument *out)
{
    struct slice after;
    struct slice next;
    split_word(rest, &out->body);
    after = *rest;
    bool is_token = !has(out->body, ':') && !has(out->body, '|');
    if (!is_token || !split_word(&after, &next) || next.at[0] == '[' || !(has(next, ':') || has(next, '|')))
        return;
    out->token = out->body;
    out->body = next;
    *rest = after;
}

/* False: there is none. */
static bool next_argument(struct slice *rest, struct argument *out)
{
    *out = (struct argument){.token = SLICE("")};
    *rest = split_trim(*rest);
    if (rest->len == 0)
        return false;
    if (rest->at[0] == '[')
        bracketed(take_brackets(rest), out);
    else
        worded(rest, out);
    out->is_multiple |= take_dots(rest);
    return true;
}

static void lower_bulk(struct build *build, struct slice text)
{
    char lower[NAME_MAX_SHOWN];
    size_t len = text.len < sizeof lower ? text.len : sizeof lower;
    for (size_t i = 0; i < len; i++)
        lower[i] = text.at[i] == '|' ? '-' : ascii_lower(text.at[i]);
    build_bulk(build, slice_of(lower, len));
}

static const char *type_of(const struct argument *argument)
{
    if (argument->is_block)
        return "block";
    if (has(argument->body, '|'))
        return "oneof";
    return has(argument->body, ':') ? NULL : "pure-token";
}

/* Redis names every argument: "rate:string" is rate, what has no name is called by its token or its first word. */
static struct slice name_of(const struct argument *argument)
{
    struct slice name = argument->body;
    struct slice rest = argument->body;
    if (argument->token.len > 0 && has(name, '|'))
        return argument->token;
    if (argument->is_block)
        split_word(&rest, &name);
    const char *colon = memchr(name.at, ':', name.len);
    return colon != NULL ? slice_of(name.at, (size_t)(colon - name.at)) : name;
}

static void argument_list(struct build *build, struct slice list, char separator);

static void argument_flags(struct build *build, const struct argument *argument)
{
    const char *words[2];
    size_t n = 0;
    if (argument->is_optional)
        words[n++] = "optional";
    if (argument->is_multiple)
        words[n++] = "multiple";
    if (n == 0)
        return;
    build_bulk_str(build, "flags");
    set_of(build, words, n);
}

static void argument_map(struct build *build, const struct argument *argument)
{
    const char *type = type_of(argument);
    bool is_token = type != NULL && strcmp(type, "pure-token") == 0;
    bool has_members = type != NULL && !is_token;
    struct slice name = name_of(argument);
    struct slice plain =
        type != NULL ? slice_str(type) : slice_of(name.at + name.len + 1, argument->body.len - name.len - 1);
    struct slice token = is_token ? argument->body : argument->token;
    bool is_key = slice_eq(plain, SLICE("key"));
    bool has_flags = argument->is_optional || argument->is_multiple;
    build_map(build, 2 + (size_t)is_key + (token.len > 0) + has_flags + has_members);
    build_bulk_str(build, "name");
    lower_bulk(build, name);
    build_bulk_str(build, "type");
    build_bulk(build, plain);
    if (is_key)
        number(build, "key_spec_index", 0);
    if (token.len > 0) {
        build_bulk_str(build, "token");
        build_bulk(build, token);
    }
    argument_flags(build, argument);
    if (has_members) {
        build_bulk_str(build, "arguments");
        argument_list(build, argument->body, argument->is_block ? ' ' : '|');
    }
}

/* separator '|': the words are alternatives, and stand for themselves. */
static bool next_of(struct slice *list, char separator, struct argument *out)
{
    if (separator == ' ')
        return next_argument(list, out);
    *out = (struct argument){.token = SLICE("")};
    return split_next(list, separator, &out->body);
}

static void argument_list(struct build *build, struct slice list, char separator)
{
    struct argument argument;
    struct slice rest = list;
    size_t count = 0;
    while (next_of(&rest, separator, &argument))
        count++;
    build_array(build, count);
    while (next_of(&list, separator, &argument))
        argument_map(build, &argument);
}

/* ---- COMMAND DOCS ---- */

static void text(struct build *build, const char *name, const char *value)
{
    build_bulk_str(build, name);
    build_bulk_str(build, value);
}

void docs_entry(struct build *build, const struct own *own)
{
    size_t count = subcommand_count(own);
    bool has_arguments = own->arguments[0] != '\0';
    build_bulk_str(build, own->name);
    build_map(build, 3 + (size_t)has_arguments + (count > 0));
    text(build, "summary", own->summary);
    text(build, "since", SINCE);
    text(build, "group", DOCS_CATEGORY);
    if (has_arguments) {
        build_bulk_str(build, "arguments");
        argument_list(build, slice_str(own->arguments), ' ');
    }
    if (count == 0)
        return;
    build_bulk_str(build, "subcommands");
    build_map(build, count);
    for (size_t i = 0; i < own_count(); i++)
        if (is_subcommand_of(own_row(i), own))
            docs_entry(build, own_row(i));
}
