#include "front/route/block_time.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "limit/command/keys.h"
#include "resp/argv.h"

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

bool block_time_reduce(const struct command *command, struct slice request, uint32_t argc, uint64_t waited_ns,
                       struct bytes *out)
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
