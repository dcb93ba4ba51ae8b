#include "front/route/request.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/why.h"
#include "front/front.h"
#include "quota/quota.h"
#include "resp/argv.h"

static struct slice located(const struct request_scan *scan, struct slice bytes, uint32_t i)
{
    if (i >= scan->argc || (uint64_t)scan->args[i].off + scan->args[i].len > bytes.len)
        return slice_of("", 0);
    return slice_of(bytes.at + scan->args[i].off, scan->args[i].len);
}

static const struct command *request_find_command(const struct front *front, struct slice name,
                                                  struct slice sub)
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

const struct command *request_as_configured(const struct front *front,
                                            const struct command *command)
{
    return quota_is_left(front->rules->cell, command) ? command_table_row(front->commands, 0)
                                                      : command;
}

void describe_request(struct request *request, const struct front *front,
                      const struct request_scan *scan, struct slice bytes)
{
    request->bytes = bytes;
    request->argc = scan->argc;
    request->name = located(scan, bytes, 0);
    request->args[0] = located(scan, bytes, 1);
    request->args[1] = located(scan, bytes, 2);
    request->command =
        request_as_configured(front, request_find_command(front, request->name, request->args[0]));
}

struct slice request_kept_bytes(const struct request *request)
{
    const struct command *command = request->command;
    bool is_plain = command->flow == FLOW_ONE && command->effect == EFFECT_NONE &&
                    !command->may_forge && command->id != 0 && !request->is_large;
    return is_plain ? request->bytes : slice_of("", 0);
}

/* ---- Redis' answers to unknown names ---- */

/* The quotation marks around names and arguments in Redis' errors. */
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
    size_t len = request_append(
        out, is_before_7 ? SLICE("-ERR Unknown subcommand or wrong number of arguments for '")
                         : SLICE("-ERR unknown subcommand '"));
    len += append_printable(out + len, request->args[0], UNKNOWN_SHOWN);
    len += request_append(out + len, SLICE("'. Try "));
    for (size_t i = 0; i < request->name.len; i++)
        out[len++] = ascii_upper(request->name.at[i]);
    len += request_append(out + len, SLICE(" HELP.\r\n"));
    return slice_of(out, len);
}

/* ---- AUTH and HELLO ---- */

static bool wrong(char *error, const char *text)
{
    return why_set(error, HELLO_ERROR_ROOM, "%s", text);
}

bool hello_is_name(struct slice name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] < '!' || name.at[i] > '~')
            return false;
    return true;
}

static bool read_version(struct hello *hello, struct slice word, char *error)
{
    int64_t version;
    if (!num_parse(word, &version))
        return wrong(error, "ERR Protocol version is not an integer or out of range");
    if (version < 2 || version > 3)
        return wrong(error, "NOPROTO unsupported protocol version");
    hello->protocol = (uint8_t)version;
    return true;
}

static bool read_option(struct hello *hello, struct argv_walk *walk, struct slice option,
                        char *error)
{
    if (slice_is_word(option, SLICE("auth")) && walk->left >= 2 && !hello->has_auth) {
        hello->has_auth = true;
        return argv_next(walk, &hello->user) && argv_next(walk, &hello->password);
    }
    if (slice_is_word(option, SLICE("setname")) && walk->left >= 1) {
        hello->has_name = true;
        if (argv_next(walk, &hello->name) && hello_is_name(hello->name))
            return true;
        return wrong(error, HELLO_BAD_NAME);
    }
    return why_set(error, HELLO_ERROR_ROOM, "ERR Syntax error in HELLO option '%.*s'",
                   (int)(option.len < 128 ? option.len : 128), option.at);
}

bool hello_read(struct hello *hello, struct slice request, char *error)
{
    struct argv_walk walk;
    struct slice word;
    *hello = (struct hello){0};
    argv_walk_init(&walk, request);
    if (!argv_next(&walk, &word) || !argv_next(&walk, &word))
        return true; /* HELLO alone */
    if (!read_version(hello, word, error))
        return false;
    while (argv_next(&walk, &word))
        if (!read_option(hello, &walk, word, error))
            return false;
    return true;
}

bool hello_logs_in(struct slice request)
{
    char error[HELLO_ERROR_ROOM];
    struct hello hello;
    (void)!hello_read(&hello, request, error);
    return hello.has_auth;
}

bool hello_read_auth(struct hello *hello, struct slice request, char *error)
{
    struct argv_walk walk;
    struct slice word, first;
    *hello = (struct hello){.has_auth = true};
    argv_walk_init(&walk, request);
    if (!argv_next(&walk, &word) || walk.left > 2 || !argv_next(&walk, &first))
        return wrong(error, "ERR syntax error");
    hello->is_short = !argv_next(&walk, &hello->password);
    hello->user = hello->is_short ? SLICE("default") : first;
    if (hello->is_short)
        hello->password = first;
    return true;
}

/* ---- the time-out of a command that waits in Redis ---- */

#define US_PER_MS 1000

/* Returns the argument with this number; the name is number 0. Empty: there is none. */
static struct slice arg_at(struct slice request, uint32_t number)
{
    struct argv_walk walk;
    struct slice arg;
    argv_walk_init(&walk, request);
    for (uint32_t i = 0; argv_next(&walk, &arg); i++)
        if (i == number)
            return arg;
    return slice_of("", 0);
}

/* Returns the number of the argument after BLOCK, which must stand before STREAMS. 0: none. */
static uint32_t behind_block(struct slice request)
{
    struct argv_walk walk;
    struct slice arg;
    argv_walk_init(&walk, request);
    for (uint32_t i = 0; argv_next(&walk, &arg) && !slice_is_word(arg, SLICE("streams")); i++)
        if (i > 0 && slice_is_word(arg, SLICE("block")))
            return i + 1;
    return 0;
}

/* Returns the number of the time-out argument; 0: none. */
static uint32_t time_at(const struct command *command, struct slice request, uint32_t argc)
{
    if (command->keys == KEYS_STREAMS)
        return behind_block(request);
    return command->keys == KEYS_COUNTED ? 1 : argc - 1;
}

/* Reads digits, and a fraction of seconds, as microseconds. False: another format. */
static bool read_us(struct slice text, bool is_ms, uint64_t *us)
{
    uint64_t unit = is_ms ? US_PER_MS : US_PER_MS * 1000;
    uint64_t whole = 0;
    size_t i = 0;
    for (; i < text.len && i < 12 && text.at[i] >= '0' && text.at[i] <= '9'; i++)
        whole = whole * 10 + (uint64_t)(text.at[i] - '0');
    uint64_t part = 0;
    uint64_t digit_value = unit;
    if (i < text.len && text.at[i] == '.' && !is_ms)
        for (i++; i < text.len && text.at[i] >= '0' && text.at[i] <= '9'; i++) {
            digit_value /= 10;
            part += digit_value * (uint64_t)(text.at[i] - '0');
        }
    *us = whole * unit + part;
    return i == text.len && text.len > 0;
}

bool block_time_reduce(const struct command *command, struct slice request, uint32_t argc,
                       uint64_t waited_ns, struct bytes *out)
{
    char text[64];
    bool is_ms = command->keys == KEYS_STREAMS;
    uint32_t number = time_at(command, request, argc);
    struct slice arg = number > 0 ? arg_at(request, number) : slice_of("", 0);
    uint64_t us;
    if (arg.len == 0 || !read_us(arg, is_ms, &us) || us == 0)
        return bytes_add(out, request, SIZE_MAX);
    uint64_t waited_us = waited_ns / NS_PER_US;
    uint64_t left_ms = us > waited_us ? (us - waited_us) / US_PER_MS : 0;
    left_ms = left_ms > 0 ? left_ms : 1;
    int n = is_ms ? snprintf(text, sizeof text, "%llu", (unsigned long long)left_ms)
                  : snprintf(text, sizeof text, "%llu.%03llu", (unsigned long long)(left_ms / 1000),
                             (unsigned long long)(left_ms % 1000));
    char bulk[96];
    int n_bulk = snprintf(bulk, sizeof bulk, "$%d\r\n%s", n, text);
    const char *from = arg.at - 1; /* finds the header of the bulk */
    while (*from != '$')
        from--;
    const char *behind = arg.at + arg.len;
    return bytes_add(out, slice_of(request.at, (size_t)(from - request.at)), SIZE_MAX) &&
           bytes_add(out, slice_of(bulk, (size_t)n_bulk), SIZE_MAX) &&
           bytes_add(out, slice_of(behind, (size_t)(request.at + request.len - behind)), SIZE_MAX);
}

bool block_time_is_from_now(const struct command *command, struct slice request, uint32_t argc)
{
    struct argv_walk walk;
    struct slice arg;
    uint32_t n_ids = command->keys == KEYS_STREAMS ? keys_count(command, request, argc) : 0;
    argv_walk_init(&walk, request);
    for (uint32_t i = 0; argv_next(&walk, &arg); i++)
        if (i + n_ids >= argc && slice_eq(arg, SLICE("$")))
            return true;
    return false;
}
