/*
 * Finds the end of a reply.
 *
 * A state machine: each step below returns whether the scan may continue. If a step returns false,
 * scan->phase holds where to continue when more bytes have arrived, or PHASE_LOST for a broken
 * stream. Replies that resp/plain.h takes skip all steps.
 *
 * Between frames scan->open is 0. Inside a frame scan->open counts unfinished elements, including
 * the element being read.
 */
#include "resp/scan.h"

#include <string.h>

#include "resp/cursor.h"
#include "resp/plain.h"

enum phase {
    PHASE_TYPE,
    PHASE_LINE,
    PHASE_LINE_LF,
    PHASE_DATA,
    PHASE_DATA_CR,
    PHASE_DATA_LF,
    PHASE_LOST
};

/* The form of the bytes after the type byte. */
enum shape {
    SHAPE_UNKNOWN,
    SHAPE_TEXT,      /* any bytes up to the CR */
    SHAPE_WORD,      /* a line in which every byte is checked */
    SHAPE_INTEGER,   /* a number */
    SHAPE_BULK,      /* a number of bytes, then the bytes */
    SHAPE_AGGREGATE, /* a number of elements, then the elements */
};

struct type {
    uint8_t shape;
    int8_t least; /* least valid number of a bulk or an aggregate; -1 is null */
    /* elements for each announced element; 2 for maps and attributes, which announce pairs */
    uint8_t each;
};

static const struct type types[256] = {
    ['+'] = {.shape = SHAPE_TEXT},
    ['-'] = {.shape = SHAPE_TEXT},
    ['_'] = {.shape = SHAPE_WORD},
    ['#'] = {.shape = SHAPE_WORD},
    [','] = {.shape = SHAPE_WORD},
    /* Redis passes on any text that a script declares as a big number */
    ['('] = {.shape = SHAPE_TEXT},
    [':'] = {.shape = SHAPE_INTEGER},
    ['$'] = {.shape = SHAPE_BULK, .least = -1},
    ['!'] = {.shape = SHAPE_BULK, .least = 1}, /* the text of an error is never empty */
    ['='] = {.shape = SHAPE_BULK, .least = 4}, /* "txt:" */
    ['*'] = {.shape = SHAPE_AGGREGATE, .least = -1, .each = 1},
    ['~'] = {.shape = SHAPE_AGGREGATE, .least = 0, .each = 1},
    ['>'] = {.shape = SHAPE_AGGREGATE, .least = 0, .each = 1},
    ['%'] = {.shape = SHAPE_AGGREGATE, .least = 0, .each = 2},
    ['|'] = {.shape = SHAPE_AGGREGATE, .least = 0, .each = 2},
};

/* State of a word with checked bytes. */
enum word { WORD_EMPTY, WORD_WHOLE, WORD_BROKEN };

static inline const struct type *type_of(const struct reply_scan *scan)
{
    return &types[(unsigned char)scan->type];
}

static inline bool reply_wait_in(struct reply_scan *scan, enum phase phase)
{
    scan->phase = (uint8_t)phase;
    return false;
}

static inline bool reply_line_end_byte(struct reply_scan *scan, struct cursor *c, char wanted,
                                       enum phase phase)
{
    if (c->at == c->end)
        return reply_wait_in(scan, phase);
    return *c->at++ == wanted || reply_wait_in(scan, PHASE_LOST);
}

/* Most lines are "OK". A call of memchr is faster only for longer lines. */
static inline const char *find_cr(const char *at, const char *end)
{
    const char *near = end - at > 16 ? at + 16 : end;
    for (; at < near; at++)
        if (*at == '\r')
            return at;
    return at < end ? memchr(at, '\r', (size_t)(end - at)) : NULL;
}

static inline bool text(struct reply_scan *scan, struct cursor *c)
{
    const char *cr = find_cr(c->at, c->end);
    c->at = cr != NULL ? cr + 1 : c->end;
    return cr != NULL ? true : reply_wait_in(scan, PHASE_LINE);
}

static enum word word_after(enum word word, char type, char byte)
{
    bool is_digit = byte >= '0' && byte <= '9';
    switch (type) {
    case '#':
        return word == WORD_EMPTY && (byte == 't' || byte == 'f') ? WORD_WHOLE : WORD_BROKEN;
    case ',':
        return is_digit || (byte != '\0' && strchr("+-.eEinfa", byte) != NULL) ? WORD_WHOLE
                                                                               : WORD_BROKEN;
    default: /* '_' has no content */
        return WORD_BROKEN;
    }
}

static bool word(struct reply_scan *scan, struct cursor *c)
{
    while (c->at < c->end) {
        char byte = *c->at++;
        if (byte == '\r')
            return scan->word == (scan->type == '_' ? WORD_EMPTY : WORD_WHOLE) ||
                   reply_wait_in(scan, PHASE_LOST);
        scan->word = (uint8_t)word_after(scan->word, scan->type, byte);
        if (scan->word == WORD_BROKEN)
            return reply_wait_in(scan, PHASE_LOST);
    }
    return reply_wait_in(scan, PHASE_LINE);
}

static inline bool number_is_fit(const struct reply_scan *scan)
{
    if (!digits_are_number(scan->number, scan->digits, scan->negative))
        return false;
    const struct type *type = type_of(scan);
    if (type->shape == SHAPE_INTEGER)
        return true;
    if (scan->negative)
        return scan->number == 1 && type->least == -1;
    return (int64_t)scan->number >= type->least &&
           scan->number <= (type->shape == SHAPE_BULK ? SCAN_REPLY_BULK_MAX : SCAN_COUNT_MAX);
}

static inline bool number(struct reply_scan *scan, struct cursor *c)
{
    for (;;) {
        size_t digits = scan->digits + digits_take(c, &scan->number);
        if (digits > DIGITS_MAX)
            return reply_wait_in(scan, PHASE_LOST);
        scan->digits = (uint8_t)digits;
        if (c->at == c->end)
            return reply_wait_in(scan, PHASE_LINE);
        char byte = *c->at++;
        if (byte == '\r')
            return number_is_fit(scan) || reply_wait_in(scan, PHASE_LOST);
        if (byte != '-' || digits > 0 || scan->negative)
            return reply_wait_in(scan, PHASE_LOST);
        scan->negative = true;
    }
}

/* Reads the element's first line, including its CR. */
static inline bool line(struct reply_scan *scan, struct cursor *c)
{
    switch (type_of(scan)->shape) {
    case SHAPE_TEXT:
        return text(scan, c);
    case SHAPE_WORD:
        return word(scan, c);
    case SHAPE_UNKNOWN:
        return reply_wait_in(scan, PHASE_LOST);
    default:
        return number(scan, c);
    }
}

/* Ends an element without inner elements. */
static inline bool leaf(struct reply_scan *scan)
{
    scan->depth = 0;
    scan->open--;
    return true;
}

/*
 * Called when an aggregate's header has ended. An attribute counts as no element, but precedes the
 * element that it describes. A push may stand between any two elements, and counts as an element
 * only if the push is the frame itself.
 */
static bool aggregate(struct reply_scan *scan)
{
    bool is_extra = scan->type == '|' || (scan->type == '>' && !scan->is_top);
    uint64_t inside = scan->negative ? 0 : scan->number * type_of(scan)->each;
    uint64_t open = scan->open + inside - (is_extra ? 0 : 1);
    scan->depth = inside == 0 ? 0 : (uint16_t)(scan->depth + 1);
    if (open > SCAN_OPEN_MAX || scan->depth > SCAN_DEPTH_MAX)
        return reply_wait_in(scan, PHASE_LOST);
    scan->open = open;
    return true;
}

/* The kind of a frame is the type of its top element. Attributes do not count. */
static inline bool type_byte(struct reply_scan *scan, struct cursor *c)
{
    if (c->at == c->end)
        return reply_wait_in(scan, PHASE_TYPE);
    scan->type = *c->at++;
    scan->is_top = scan->kind == '\0' && scan->open == 1;
    if (scan->is_top && scan->type != '|') {
        scan->kind = scan->type;
        scan->errors += scan_is_error(scan->type);
    }
    scan->number = 0;
    scan->digits = 0;
    scan->negative = false;
    scan->word = WORD_EMPTY;
    return true;
}

/* Continues one element; for an aggregate only its header. */
static inline bool element(struct reply_scan *scan, struct cursor *c, enum phase phase)
{
    switch (phase) {
    case PHASE_TYPE:
        if (!type_byte(scan, c))
            return false;
        /* fall through */
    case PHASE_LINE:
        if (!line(scan, c))
            return false;
        /* fall through */
    case PHASE_LINE_LF:
        if (!reply_line_end_byte(scan, c, '\n', PHASE_LINE_LF))
            return false;
        if (type_of(scan)->shape == SHAPE_AGGREGATE)
            return aggregate(scan);
        if (type_of(scan)->shape != SHAPE_BULK || scan->negative)
            return leaf(scan);
        scan->bulk_left = scan->number;
        /* fall through */
    case PHASE_DATA:
        if (!data_skip(c, &scan->bulk_left))
            return reply_wait_in(scan, PHASE_DATA);
        /* fall through */
    case PHASE_DATA_CR:
        if (!reply_line_end_byte(scan, c, '\r', PHASE_DATA_CR))
            return false;
        /* fall through */
    case PHASE_DATA_LF:
        return reply_line_end_byte(scan, c, '\n', PHASE_DATA_LF) && leaf(scan);
    case PHASE_LOST:
        break;
    }
    return false;
}

/* Takes a whole line of any bytes in memory, after its type byte. */
static inline const char *text_at_hand(const char *at, const char *end)
{
    const char *cr = find_cr(at, end);
    return cr != NULL && end - cr >= CRLF_LEN && is_crlf(cr) ? cr + CRLF_LEN : NULL;
}

static inline const char *bulk_at_hand(const char *at, const char *end)
{
    uint32_t len;
    const char *data = plain_bulk(at, end, &len);
    if (data != NULL)
        return data + len + CRLF_LEN;
    bool is_null =
        end - at >= (ptrdiff_t)strlen("$-1\r\n") && memcmp(at, "$-1\r\n", strlen("$-1\r\n")) == 0;
    return is_null ? at + strlen("$-1\r\n") : NULL;
}

/* Takes a whole status, error, integer or bulk in memory. Returns the end of the reply, or NULL. */
static inline const char *leaf_at_hand(const char *at, const char *end)
{
    uint32_t number;
    if (at == end)
        return NULL;
    switch (*at) {
    case '$':
        return bulk_at_hand(at, end);
    case '+':
    case '-':
        return text_at_hand(at + 1, end);
    case ':':
        return plain_header(at, end, &number);
    default:
        return NULL;
    }
}

static bool reply(struct reply_scan *scan, struct cursor *c)
{
    enum phase phase = scan->phase;
    if (scan->open == 0) {
        if (c->at == c->end)
            return false;
        scan->open = 1;
        scan->kind = '\0';
    }
    for (; scan->open > 0; phase = PHASE_TYPE) {
        const char *next = phase == PHASE_TYPE && scan->kind ? leaf_at_hand(c->at, c->end) : NULL;
        if (next != NULL) {
            c->at = next;
            leaf(scan);
        } else if (!element(scan, c, phase)) {
            return false;
        }
    }
    return true;
}

static enum scan_result reply_scan_stepwise(struct reply_scan *scan, const char *data, size_t n,
                                            size_t *used)
{
    struct cursor c = {data, data, data + n};
    bool whole = reply(scan, &c);
    *used = (size_t)(c.at - data);
    if (!whole)
        return scan->phase == PHASE_LOST ? SCAN_BAD : SCAN_MORE;
    scan->phase = PHASE_TYPE;
    return SCAN_FRAME;
}

uint32_t reply_scan_plain(struct reply_scan *scan, const char *data, size_t n, uint32_t most,
                          size_t *used)
{
    uint32_t count = 0;
    const char *at = data;
    const char *next;
    while (scan->open == 0 && count < most && (next = leaf_at_hand(at, data + n)) != NULL) {
        scan->errors += *at == '-';
        at = next;
        count++;
    }
    *used = (size_t)(at - data);
    return count;
}

enum scan_result reply_scan(struct reply_scan *scan, const char *data, size_t n, size_t *used)
{
    const char *next = scan->open == 0 ? leaf_at_hand(data, data + n) : NULL;
    if (next == NULL)
        return reply_scan_stepwise(scan, data, n, used);
    scan->kind = *data;
    scan->errors += *data == '-';
    *used = (size_t)(next - data);
    return SCAN_FRAME;
}
