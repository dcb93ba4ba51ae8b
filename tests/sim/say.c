/* A client's output, and values that tell which client has written them. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "resp/emit.h"
#include "tests/sim/client.h"
#include "tests/sim/run.h"

#define WORD_MAX 256

static void append(struct bytes *bytes, const char *data, size_t n)
{
    if (!bytes_add(bytes, slice_of(data, n), SIZE_MAX))
        abort();
}

void say_raw(struct client *client, const char *data, size_t n)
{
    append(&client->out, data, n);
}

static void say_header(struct client *client, char type, size_t n)
{
    char header[EMIT_HEADER_MAX];
    append(&client->out, header, emit_header(header, type, (int64_t)n));
}

#define NAME_ROOM 24 /* bytes at the start of a request that is_decided searches for a name */
/* Redis and weir close a client without a login at a request with more words */
#define STRANGER_WORDS 10

void say_begin(struct client *client, unsigned words)
{
    client->may_be_closed |=
        words > STRANGER_WORDS && !(client->session.is_in && client->intent.is_in);
    client->begun = client->out.len;
    say_header(client, '*', words);
    run.commands++;
}

/* True if weir's own scripts decide the request: its name is LIMIT or CL.THROTTLE. */
static bool is_decided(const struct client *client)
{
    static const struct slice names[] = {SLICE("\r\n$5\r\nLIMIT\r\n"),
                                         SLICE("\r\n$11\r\nCL.THROTTLE\r\n")};
    size_t begun = client->begun < client->out.len ? client->begun : client->out.len;
    size_t n = client->out.len - begun < NAME_ROOM ? client->out.len - begun : NAME_ROOM;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && n > 0; i++)
        if (memmem(client->out.at + begun, n, names[i].at, names[i].len) != NULL)
            return true;
    return false;
}

void say_word(struct client *client, struct slice word)
{
    say_header(client, '$', word.len);
    append(&client->out, word.at, word.len);
    append(&client->out, "\r\n", 2);
}

void say_letters(struct client *client, char letter, size_t n)
{
    say_header(client, '$', n);
    char *at = bytes_reserve(&client->out, n, SIZE_MAX);
    if (at == NULL)
        abort();
    memset(at, letter, n);
    client->out.len += n;
    append(&client->out, "\r\n", 2);
}

void say_text(struct client *client, const char *format, ...)
{
    char word[WORD_MAX];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(word, sizeof word, format, args);
    va_end(args);
    say_word(client, slice_of(word, (size_t)n));
}

void expect(struct client *client, const struct act *act)
{
    if (client->is_lost)
        return;
    unsigned at = (client->first_expected + client->n_expected++) % EXPECTED_MAX;
    client->expected[at] =
        (struct expected){*act, client->sent + client->out.len, client->n_expected - 1};
    client->expected[at].act.is_decided = is_decided(client);
}

#define NUMBER_ROOM 24

/* Writes the digits of a number in this base, and the byte `behind`. */
static char *put_number(char *out, size_t number, unsigned base, char behind)
{
    char digits[NUMBER_ROOM];
    size_t n = 0;
    do
        digits[n++] = "0123456789abcdef"[number % base];
    while ((number /= base) > 0);
    while (n > 0)
        *out++ = digits[--n];
    *out++ = behind;
    return out;
}

void say_key(struct client *client, char kind, uint32_t key)
{
    char word[4 * NUMBER_ROOM] = {kind, ':'};
    char *end = put_number(word + 2, client->number, 10, '.');
    end = put_number(end, client->life, 10, ':');
    end = put_number(end, key % OWN_KEYS, 10, '\0');
    say_word(client, slice_of(word, (size_t)(end - 1 - word)));
}

/* value_of writes whole numbers: the last one may end beyond the length of the value */
static char value_room[(1 << 20) + NUMBER_ROOM];

/* "~3.1.77~" and more bytes that depend only on the number. Valid until the next call. */
static struct slice value_of(const struct client *client, uint32_t number)
{
    const size_t most = sizeof value_room - NUMBER_ROOM - 1;
    char *end = value_room;
    *end++ = '~';
    end = put_number(end, client->number, 10, '.');
    end = put_number(end, client->life, 10, '.');
    end = put_number(end, number, 10, '~');
    uint32_t spread = number * UINT32_C(2654435761);
    size_t len = (spread & 0xff000000) == 0 ? spread % run.plan.value_max : spread % 40;
    for (size_t n; (n = (size_t)(end - value_room)) < len && n <= most;)
        end = put_number(end, n, 16, '~');
    size_t n = (size_t)(end - value_room);
    return slice_of(value_room, n < most ? n : most);
}

void say_value(struct client *client, uint32_t number)
{
    say_word(client, value_of(client, number));
}

bool is_value(const struct client *client, uint32_t number, const struct reply *reply)
{
    return reply->type == '$' && !reply->is_nil && slice_eq(reply->text, value_of(client, number));
}

/* ---- owner of a value ---- */

/* Reads the owner from "~3.1.77~". False: no value. */
static bool read_mark(struct slice text, unsigned *number, unsigned *life)
{
    unsigned parts[3] = {0};
    size_t at = 1;
    for (int part = 0; part < 3; part++) {
        size_t begin = at;
        for (; at < text.len && text.at[at] >= '0' && text.at[at] <= '9'; at++)
            parts[part] = parts[part] * 10 + (unsigned)(text.at[at] - '0');
        if (at == begin || at == text.len || text.at[at++] != (part < 2 ? '.' : '~'))
            return false;
    }
    *number = parts[0];
    *life = parts[1];
    return true;
}

bool has_strange_mark(const struct client *client, struct slice bytes)
{
    unsigned number, life;
    const char *end = bytes.at + bytes.len;
    for (const char *at = bytes.at; (at = memchr(at, '~', (size_t)(end - at))) != NULL; at++)
        if (read_mark(slice_of(at, (size_t)(end - at)), &number, &life) &&
            (number != client->number || life != client->life))
            return true;
    return false;
}
