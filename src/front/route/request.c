#include "front/route/request.h"

#include "front/front.h"
#include "quota/quota.h"
#include "resp/argv.h"

static struct slice located(const struct request_scan *scan, struct slice bytes, uint32_t i)
{
    if (i >= scan->argc || (uint64_t)scan->args[i].off + scan->args[i].len > bytes.len)
        return slice_of("", 0);
    return slice_of(bytes.at + scan->args[i].off, scan->args[i].len);
}

static const struct command *request_find_command(const struct front *front, struct slice name, struct slice sub)
{
    const struct command *command = command_find(front->commands, name, sub);
    if (command->id == 0 && sub.len > 0) {
        const struct command *container = command_find(front->commands, name, slice_of("", 0));
        if (container->flow == FLOW_OWN)
            return container;
    }
    if (command->id != 0 || !unknown_by_luck(name))
        return command;
    /* Redis recognizes POST and Host: up to a NUL. */
    const struct command *cut = command_find(front->commands, slice_str(name.at), slice_of("", 0));
    return cut->flow == FLOW_DROP ? cut : command;
}

const struct command *request_as_configured(const struct front *front, const struct command *command)
{
    return quota_is_left(front->rules->cell, command) ? command_table_row(front->commands, 0) : command;
}

void describe_request(struct request *request, const struct front *front, const struct request_scan *scan,
                      struct slice bytes)
{
    request->bytes = bytes;
    request->argc = scan->argc;
    request->name = located(scan, bytes, 0);
    request->args[0] = located(scan, bytes, 1);
    request->args[1] = located(scan, bytes, 2);
    request->command = request_as_configured(front, request_find_command(front, request->name, request->args[0]));
}

struct slice request_kept_bytes(const struct request *request)
{
    const struct command *command = request->command;
    bool is_plain = command->flow == FLOW_ONE && command->effect == EFFECT_NONE && !command->may_forge &&
                    command->id != 0 && !request->is_large;
    return is_plain ? request->bytes : slice_of("", 0);
}

/* ---- Redis' answers to unknown names ---- */

/* The quotation marks around names and arguments that Redis repeats. */
struct marks {
    struct slice before, after;
};

static const struct marks new_marks = {{"'", 1}, {"' ", 2}};
static const struct marks old_marks = {{"`", 1}, {"`, ", 3}};

static size_t request_append(char *out, struct slice text)
{
    memcpy(out, text.at, text.len);
    return text.len;
}

/* Appends at most `max` bytes, up to a NUL. */
static size_t append_printable(char *out, struct slice text, size_t max)
{
    size_t n = text.len < max ? text.len : max;
    size_t len = 0;
    for (; len < n && text.at[len] != '\0'; len++)
        out[len] = text.at[len] == '\r' || text.at[len] == '\n' ? ' ' : text.at[len];
    return len;
}

/* Appends "'one' 'two' ": quoted arguments, until UNKNOWN_SHOWN bytes are shown. */
static size_t append_args(char *out, const struct request *request, const struct marks *marks)
{
    struct argv_walk walk;
    struct slice arg;
    size_t len = 0;
    argv_walk_init(&walk, request->bytes);
    if (request->is_large || !argv_next(&walk, &arg))
        return 0;
    while (len < UNKNOWN_SHOWN && argv_next(&walk, &arg)) {
        size_t left = UNKNOWN_SHOWN - len;
        len += request_append(out + len, marks->before);
        len += append_printable(out + len, arg, left);
        len += request_append(out + len, marks->after);
    }
    return len;
}

struct slice unknown_command(const struct request *request, bool is_before_7, char *out)
{
    const struct marks *marks = is_before_7 ? &old_marks : &new_marks;
    size_t len = request_append(out, SLICE("-ERR unknown command "));
    len += request_append(out + len, marks->before);
    len += append_printable(out + len, request->name, UNKNOWN_SHOWN);
    len += request_append(out + len, marks->before);
    len += request_append(out + len, SLICE(", with args beginning with: "));
    len += append_args(out + len, request, marks);
    len += request_append(out + len, SLICE("\r\n"));
    return slice_of(out, len);
}

struct slice unknown_subcommand(const struct request *request, bool is_before_7, char *out)
{
    size_t len = request_append(out, is_before_7 ? SLICE("-ERR Unknown subcommand or wrong number of arguments for '")
                                                 : SLICE("-ERR unknown subcommand '"));
    len += append_printable(out + len, request->args[0], UNKNOWN_SHOWN);
    len += request_append(out + len, SLICE("'. Try "));
    for (size_t i = 0; i < request->name.len; i++)
        out[len++] = ascii_upper(request->name.at[i]);
    len += request_append(out + len, SLICE(" HELP.\r\n"));
    return slice_of(out, len);
}
