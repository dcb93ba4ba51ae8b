/* Redis' elements are copied unchanged: only the header of a reply is written anew. */
#include "quota/command_merge.h"

#include "limit/command/own.h"
#include "quota/docs.h"
#include "resp/argv.h"
#include "resp/element.h"

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
                                 void (*entry)(struct build *, const struct own *), bool is_pair, struct build *out)
{
    struct element_head head;
    const struct own *own;
    if (!element_head(reply, &head) || head.number < 0 || head.number > SCAN_COUNT_MAX ||
        (head.type != '*' && head.type != (is_pair ? '%' : '~')))
        return false;
    build_header(out, head.type, head.number + command_merge_count_of(*asked) * (is_pair && head.type == '*' ? 2 : 1));
    build_raw(out, head.rest);
    while (is_good(out) && (own = command_merge_next(asked)) != NULL)
        entry(out, own);
    return true;
}

/* COMMAND INFO with names: writes an entry for each name, in their order. */
static bool command_merge_replace(struct slice reply, struct asked *asked, struct build *out)
{
    struct element_head head;
    struct slice name;
    struct slice element;
    if (!element_head(reply, &head) || head.type != '*' || head.number != (int64_t)asked->names.left)
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
 * Adds weir's commands unless the request has a filter, which Redis alone applies, to Redis'
 * commands alone.
 */
static bool command_merge_list(struct slice reply, struct asked *asked, struct build *out)
{
    asked->has_subcommands = true;
    return asked->is_all && command_merge_append(reply, asked, docs_name, false, out);
}

static bool count(struct slice reply, struct asked *asked, struct build *out)
{
    struct element_head head;
    if (!element_head(reply, &head) || head.type != ':' || head.number < 0 || head.number > SCAN_COUNT_MAX)
        return false;
    build_int(out, head.number + command_merge_count_of(*asked));
    return true;
}

/* False: leave the reply unchanged. */
typedef bool (*merger)(struct slice reply, struct asked *asked, struct build *out);

static const struct {
    struct slice name;
    merger merge;
} subcommands[] = {{{"info", 4}, info}, {{"docs", 4}, docs}, {{"list", 4}, command_merge_list}, {{"count", 5}, count}};

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
