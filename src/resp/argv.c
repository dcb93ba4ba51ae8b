/*
 * Reads the arguments of a request.
 *
 * The input is untrusted: argv_next and argv_split never read beyond their slice, whatever the
 * slice contains.
 */
#include "resp/argv.h"

#include <string.h>

#include "resp/emit.h"
#include "resp/cursor.h"
#include "resp/plain.h"

/*
 * Reads a header line of the type `type`, and the number in that line. False if the input does not
 * begin with such a line, or the number is negative.
 */
static bool argv_header_take(struct argv_walk *walk, char type, uint64_t *number)
{
    if (walk->at == walk->end || *walk->at != type)
        return false;
    struct cursor c = {walk->at, walk->at + 1, walk->end};
    *number = 0;
    size_t digits = digits_take(&c, number);
    if (!digits_are_number(*number, digits, false) || c.end - c.at < CRLF_LEN || !is_crlf(c.at))
        return false;
    walk->at = c.at + CRLF_LEN;
    return true;
}

void argv_walk_init(struct argv_walk *walk, struct slice request)
{
    uint64_t count;
    if (request.len == 0)
        request = SLICE(""); /* avoids arithmetic on NULL */
    *walk = (struct argv_walk){request.at, request.at + request.len, 0};
    if (argv_header_take(walk, '*', &count) && count <= INT32_MAX)
        walk->left = (uint32_t)count;
}

/* Returns false at the first bytes that are no complete bulk. */
bool argv_next(struct argv_walk *walk, struct slice *arg)
{
    uint64_t len;
    bool is_there = walk->left > 0 && argv_header_take(walk, '$', &len) &&
                    walk->end - walk->at >= CRLF_LEN &&
                    len <= (uint64_t)(walk->end - walk->at) - CRLF_LEN;
    if (!is_there) {
        walk->left = 0;
        return false;
    }
    walk->left--;
    *arg = slice_of(walk->at, len);
    walk->at += len + CRLF_LEN;
    return true;
}

/* True for the bytes for which isspace is true in the C locale. */
static bool argv_is_blank(char byte)
{
    return byte == ' ' || (byte >= '\t' && byte <= '\r');
}

/* Redis skips \v and \f between words, but \v or \f does not end a word. */
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

static char argv_unescape(char byte)
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

/* Takes one byte inside quotes of kind `quote`, unescaped. `line` is not empty. */
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
            byte = argv_unescape(p[1]);
        }
    }
    line->at += took;
    line->len -= took;
    return byte;
}

static char argv_next_byte(struct slice *line)
{
    line->len--;
    return *line->at++;
}

/*
 * Takes the rest of a quoted piece, to *out. The closing quote always ends the word. False if the
 * closing quote is missing, or not followed by a blank.
 */
static bool quoted(struct slice *line, char quote, char **out)
{
    while (line->len > 0 && line->at[0] != quote)
        *(*out)++ = quoted_byte(line, quote);
    if (line->len == 0)
        return false;
    argv_next_byte(line);
    return line->len == 0 || argv_is_blank(line->at[0]);
}

/*
 * Takes the word at the start of `line`, to `out`. The unescaped word is never longer than its text
 * in `line`. False if quotes are unbalanced.
 */
static bool argv_word(struct slice *line, char *out, size_t *len)
{
    char *to = out;
    bool balanced = true;
    while (line->len > 0 && !ends_word(line->at[0])) {
        char byte = argv_next_byte(line);
        if (byte == '"' || byte == '\'') {
            balanced = quoted(line, byte, &to);
            break;
        }
        *to++ = byte;
    }
    *len = (size_t)(to - out);
    return balanced;
}

static bool argv_has_word(struct slice *line)
{
    while (line->len > 0 && argv_is_blank(line->at[0]))
        argv_next_byte(line);
    return line->len > 0;
}

/*
 * Each word is unescaped behind a gap for the widest header, because the size of the header depends
 * on the word's length. The word then moves down to the end of its header. After the last word all
 * words move down to the array's header.
 *
 * Why the room suffices for a line of L bytes: a word of m bytes in the line (with its blank or
 * quotes) becomes at most 7 * m bytes. The worst case is "$1\r\na\r\n" for one byte. The gap for a
 * header is h <= 3 + digits of L. At any time the output holds h for the first header, the words
 * that took m1 bytes, and h for the next header. At most L - m1 bytes of the next word follow: 7L +
 * 2h <= 8L + 32.
 */
bool argv_split(struct slice line, char *out, size_t *out_len)
{
    char widest[EMIT_HEADER_MAX];
    size_t gap = emit_header(widest, '$', (int64_t)line.len);
    char *to = out + gap;
    int64_t argc = 0;
    while (argv_has_word(&line)) {
        size_t len;
        if (!argv_word(&line, to + gap, &len))
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
