/*
 * Reads the arguments of a request that the scanner has accepted.
 *
 * A walk trusts the scanner; a split trusts nobody, it is given what somebody typed. Both stay inside their slice.
 */
#include "resp/argv.h"

#include <assert.h>
#include <string.h>

#include "resp/emit.h"

#define HEADER_LEAST 4 /* "*0\r\n": no number of the scanner's is shorter */

/* The number of the header line at *at, which is left behind its LF. Negative counts are empty requests: 0. */
static uint64_t header_take(const char **at)
{
    const char *p = *at + 1;
    uint64_t value = 0;
    bool negative = *p == '-';
    for (p += negative; *p != '\r'; p++)
        value = value * 10 + (uint64_t)(*p - '0');
    *at = p + 2;
    return negative ? 0 : value;
}

void argv_walk_init(struct argv_walk *walk, struct slice request)
{
    assert(request.len >= HEADER_LEAST && request.at[0] == '*');
    walk->at = request.at;
    walk->end = request.at + request.len;
    walk->left = (uint32_t)header_take(&walk->at);
}

bool argv_next(struct argv_walk *walk, struct slice *arg)
{
    if (walk->left == 0)
        return false;
    assert(walk->end - walk->at >= HEADER_LEAST && walk->at[0] == '$');
    walk->left--;
    arg->len = header_take(&walk->at);
    arg->at = walk->at;
    walk->at += arg->len + 2;
    assert(walk->at <= walk->end);
    return true;
}

/* What isspace knows in the C locale. */
static bool is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Redis skips \v and \f between words, but does not end a word at them. */
static bool ends_word(char byte)
{
    return byte == ' ' || byte == '\n' || byte == '\r' || byte == '\t';
}

static int hex_value(char byte)
{
    if (byte >= '0' && byte <= '9')
        return byte - '0';
    char lower = ascii_lower(byte);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

static char unescape(char byte)
{
    switch (byte) {
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    case 'b':
        return '\b';
    case 'a':
        return '\a';
    default:
        return byte;
    }
}

/* One byte of what stands in quotes of kind `quote`, its escape undone. `line` is not empty. */
static char quoted_byte(struct slice *line, char quote)
{
    const char *p = line->at;
    size_t took = 1;
    char byte = p[0];
    if (byte == '\\' && line->len > 1) {
        if (quote == '\'') {
            took = p[1] == '\'' ? 2 : 1;
            byte = p[took - 1];
        } else if (line->len > 3 && p[1] == 'x' && hex_value(p[2]) >= 0 && hex_value(p[3]) >= 0) {
            took = 4;
            byte = (char)(hex_value(p[2]) * 16 + hex_value(p[3]));
        } else {
            took = 2;
            byte = unescape(p[1]);
        }
    }
    line->at += took;
    line->len -= took;
    return byte;
}

static char next_byte(struct slice *line)
{
    line->len--;
    return *line->at++;
}

/* The rest of a quoted piece, into *out. A closing quote always ends its word. */
static bool quoted(struct slice *line, char quote, char **out)
{
    while (line->len > 0 && line->at[0] != quote)
        *(*out)++ = quoted_byte(line, quote);
    if (line->len == 0)
        return false;
    next_byte(line);
    return line->len == 0 || is_blank(line->at[0]);
}

/* The word at the start of `line`, into `out`; it never grows. False: unbalanced quotes. */
static bool word(struct slice *line, char *out, size_t *len)
{
    char *to = out;
    bool balanced = true;
    while (line->len > 0 && !ends_word(line->at[0])) {
        char byte = next_byte(line);
        if (byte == '"' || byte == '\'') {
            balanced = quoted(line, byte, &to);
            break;
        }
        *to++ = byte;
    }
    *len = (size_t)(to - out);
    return balanced;
}

static bool has_word(struct slice *line)
{
    while (line->len > 0 && is_blank(line->at[0]))
        next_byte(line);
    return line->len > 0;
}

/*
 * Each word is unescaped where it will not be overwritten by the header that its length decides, then moved up to it;
 * so are all words in the end.
 *
 * Why the room is enough, for a line of L bytes: a word that took m line bytes (its blank or quotes included) becomes
 * at most 7 * m bytes, the worst being "$1\r\na\r\n" for one byte; the gap for a header is h <= 3 + digits of L; at any
 * time there are h for the first header, words that took m1 bytes, h for the next header and at most L - m1 bytes of
 * its word: 7L + 2h <= 8L + 32.
 */
bool argv_split(struct slice line, char *out, size_t *out_len)
{
    char widest[EMIT_HEADER_MAX];
    size_t gap = emit_header(widest, '$', (int64_t)line.len);
    char *to = out + gap;
    int64_t argc = 0;
    while (has_word(&line)) {
        size_t len;
        if (!word(&line, to + gap, &len))
            return false;
        size_t header = emit_header(to, '$', (int64_t)len);
        memmove(to + header, to + gap, len);
        to += header + len;
        *to++ = '\r';
        *to++ = '\n';
        argc++;
    }
    *out_len = 0;
    if (argc > 0) {
        size_t words = (size_t)(to - (out + gap));
        size_t header = emit_header(out, '*', argc);
        memmove(out + header, out + gap, words);
        *out_len = header + words;
    }
    return true;
}
