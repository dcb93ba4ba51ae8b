#include "front/unknown.h"

#include "resp/argv.h"

static size_t append(char *out, struct slice text)
{
    memcpy(out, text.at, text.len);
    return text.len;
}

/* At most `max` bytes, up to a NUL. */
static size_t append_printable(char *out, struct slice text, size_t max)
{
    size_t n = text.len < max ? text.len : max;
    size_t len = 0;
    for (; len < n && text.at[len] != '\0'; len++)
        out[len] = text.at[len] == '\r' || text.at[len] == '\n' ? ' ' : text.at[len];
    return len;
}

/* "'one' 'two' ": each in quotation marks, until UNKNOWN_SHOWN bytes are shown. */
static size_t append_args(char *out, const struct request *request)
{
    struct argv_walk walk;
    struct slice arg;
    size_t len = 0;
    argv_walk_init(&walk, request->bytes);
    if (request->is_large || !argv_next(&walk, &arg))
        return 0;
    while (len < UNKNOWN_SHOWN && argv_next(&walk, &arg)) {
        size_t left = UNKNOWN_SHOWN - len;
        out[len++] = '\'';
        len += append_printable(out + len, arg, left);
        out[len++] = '\'';
        out[len++] = ' ';
    }
    return len;
}

struct slice unknown_command(const struct request *request, char *out)
{
    size_t len = append(out, SLICE("-ERR unknown command '"));
    len += append_printable(out + len, request->name, UNKNOWN_SHOWN);
    len += append(out + len, SLICE("', with args beginning with: "));
    len += append_args(out + len, request);
    len += append(out + len, SLICE("\r\n"));
    return slice_of(out, len);
}

struct slice unknown_subcommand(const struct request *request, char *out)
{
    size_t len = append(out, SLICE("-ERR unknown subcommand '"));
    len += append_printable(out + len, request->args[0], UNKNOWN_SHOWN);
    len += append(out + len, SLICE("'. Try "));
    for (size_t i = 0; i < request->name.len; i++)
        out[len++] = ascii_upper(request->name.at[i]);
    len += append(out + len, SLICE(" HELP.\r\n"));
    return slice_of(out, len);
}
