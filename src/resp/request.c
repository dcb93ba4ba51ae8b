/*
 * Finds the end of a request, and the positions of its first arguments.
 *
 * A state machine: each step below returns whether the scan may continue. If a step returns false,
 * scan->phase holds where to continue when more bytes have arrived, or scan->error holds the error.
 * A request that resp/plain.h takes skips all steps.
 */
#include "resp/scan.h"

#include <string.h>

#include "resp/cursor.h"
#include "resp/plain.h"

enum phase {
    PHASE_START, /* between frames: the scan describes the previous frame until the next byte */
    PHASE_INLINE,
    PHASE_COUNT, /* inside "*2\r" */
    PHASE_COUNT_LF,
    PHASE_DOLLAR,
    PHASE_LENGTH, /* inside "$3\r", after the dollar */
    PHASE_LENGTH_LF,
    PHASE_DATA,
    PHASE_DATA_CR,
    PHASE_DATA_LF,
};

const struct request_limits request_limits_before_auth = {.args = 10, .bulk = 16384};
const struct request_limits request_limits_normal = {.args = INT32_MAX, .bulk = SCAN_BULK_MAX};

static inline bool request_wait_in(struct request_scan *scan, enum phase phase)
{
    scan->phase = (uint8_t)phase;
    return false;
}

static inline bool request_refuse(struct request_scan *scan, enum err error)
{
    scan->error = error;
    return false;
}

/* Takes the byte `wanted`; any other byte is a protocol error. */
static inline bool request_line_end_byte(struct request_scan *scan, struct cursor *c, char wanted,
                                         enum phase phase)
{
    if (c->at == c->end)
        return request_wait_in(scan, phase);
    if (*c->at != wanted)
        return request_refuse(scan, ERR_PROTO_CRLF);
    c->at++;
    return true;
}

/*
 * Takes a line of words. NUL and length are checked byte by byte, so that the error does not depend
 * on how the input is split.
 */
static bool inline_line(struct request_scan *scan, struct cursor *c)
{
    size_t room = SCAN_LINE_MAX - scan->line;
    size_t have = (size_t)(c->end - c->at);
    bool over = have > room;
    const char *lf = memchr(c->at, '\n', over ? room + 1 : have);
    size_t text = lf != NULL ? (size_t)(lf - c->at) : over ? room : have;

    if (memchr(c->at, '\0', text) != NULL)
        return request_refuse(scan, ERR_PROTO_NUL);
    if (lf == NULL && over)
        return request_refuse(scan, ERR_PROTO_INLINE_TOO_BIG);
    scan->line += (uint32_t)text;
    c->at += text + (lf != NULL ? 1 : 0);
    return lf != NULL ? true : request_wait_in(scan, PHASE_INLINE);
}

/*
 * Called after the type byte. `negative` and `not_number` are false, because no further header
 * follows a header that sets one of the two.
 */
static inline void header_start(struct request_scan *scan)
{
    scan->line = 1;
    scan->number = 0;
}

/*
 * Takes a byte of a header line that is neither a digit nor the CR. The byte is no error yet,
 * because Redis checks the number only at the CR.
 */
static bool header_odd_byte(struct request_scan *scan, char byte, enum err too_big)
{
    if (scan->line == SCAN_LINE_MAX)
        return request_refuse(scan, too_big);
    if (byte == '\0')
        return request_refuse(scan, ERR_PROTO_NUL);
    if (byte == '\n')
        return request_refuse(scan, ERR_PROTO_CRLF);
    if (byte == '-' && scan->line == 1)
        scan->negative = true;
    else
        scan->not_number = true;
    scan->line++;
    return true;
}

/* Reads the header line, including its CR. */
static inline bool header_line(struct request_scan *scan, struct cursor *c, enum phase phase,
                               enum err too_big)
{
    for (;;) {
        size_t line = scan->line + digits_take(c, &scan->number);
        if (line > SCAN_LINE_MAX)
            return request_refuse(scan, too_big);
        scan->line = (uint32_t)line;
        if (c->at == c->end)
            return request_wait_in(scan, phase);
        char byte = *c->at++;
        if (byte == '\r')
            return true;
        if (!header_odd_byte(scan, byte, too_big))
            return false;
    }
}

static inline bool header_is_number(const struct request_scan *scan)
{
    size_t digits = scan->line - 1 - scan->negative;
    return !scan->not_number && digits_are_number(scan->number, digits, scan->negative);
}

static inline bool request_take_count(struct request_scan *scan,
                                      const struct request_limits *limits)
{
    if (!header_is_number(scan) || (scan->number > INT32_MAX && !scan->negative))
        return request_refuse(scan, ERR_PROTO_MULTIBULK_LENGTH);
    uint32_t argc = scan->negative ? 0 : (uint32_t)scan->number;
    if (argc > limits->args)
        return request_refuse(scan, ERR_PROTO_UNAUTH_MULTIBULK);
    scan->argc = argc;
    return true;
}

static inline bool take_length(struct request_scan *scan, const struct request_limits *limits)
{
    if (!header_is_number(scan) || scan->negative || scan->number > SCAN_BULK_MAX)
        return request_refuse(scan, ERR_PROTO_BULK_LENGTH);
    if (scan->number > limits->bulk)
        return request_refuse(scan, ERR_PROTO_UNAUTH_BULK);
    return true;
}

static bool count_line(struct request_scan *scan, struct cursor *c,
                       const struct request_limits *limits, enum phase phase)
{
    if (phase == PHASE_COUNT) {
        if (!header_line(scan, c, PHASE_COUNT, ERR_PROTO_MULTIBULK_LINE_TOO_BIG) ||
            !request_take_count(scan, limits))
            return false;
    }
    return request_line_end_byte(scan, c, '\n', PHASE_COUNT_LF);
}

static inline bool dollar(struct request_scan *scan, struct cursor *c)
{
    if (c->at == c->end)
        return request_wait_in(scan, PHASE_DOLLAR);
    if (*c->at != '$') {
        scan->got = *c->at;
        return request_refuse(scan, ERR_PROTO_EXPECTED_DOLLAR);
    }
    c->at++;
    header_start(scan);
    return true;
}

/* Returns the offset of `at` in the request. scan->at counts the bytes taken by earlier calls. */
static inline uint64_t offset(const struct request_scan *scan, const struct cursor *c,
                              const char *at)
{
    return scan->at + (uint64_t)(at - c->begin);
}

/*
 * Called when the argument's header is complete. The argument begins `off` bytes into the request.
 */
static inline void locate(struct request_scan *scan, uint32_t arg, uint64_t off, uint64_t len)
{
    if (arg < SCAN_ARGS)
        scan->args[arg] = (struct scan_arg){.off = (uint32_t)off, .len = (uint32_t)len};
}

/* Continues one argument. */
static bool argument(struct request_scan *scan, struct cursor *c,
                     const struct request_limits *limits, enum phase phase)
{
    switch (phase) {
    default: /* PHASE_DOLLAR */
        if (!dollar(scan, c))
            return false;
        /* fall through */
    case PHASE_LENGTH:
        if (!header_line(scan, c, PHASE_LENGTH, ERR_PROTO_BULK_LINE_TOO_BIG) ||
            !take_length(scan, limits))
            return false;
        /* fall through */
    case PHASE_LENGTH_LF:
        if (!request_line_end_byte(scan, c, '\n', PHASE_LENGTH_LF))
            return false;
        scan->bulk_left = scan->number;
        locate(scan, scan->arg, offset(scan, c, c->at), scan->number);
        /* fall through */
    case PHASE_DATA:
        if (!data_skip(c, &scan->bulk_left))
            return request_wait_in(scan, PHASE_DATA);
        /* fall through */
    case PHASE_DATA_CR:
        if (!request_line_end_byte(scan, c, '\r', PHASE_DATA_CR))
            return false;
        /* fall through */
    case PHASE_DATA_LF:
        return request_line_end_byte(scan, c, '\n', PHASE_DATA_LF);
    }
}

/* The first byte alone decides whether a request is inline or multibulk. */
static enum phase request_start(struct request_scan *scan, struct cursor *c)
{
    *scan = (struct request_scan){.is_inline = *c->at != '*'};
    if (scan->is_inline)
        return PHASE_INLINE;
    c->at++;
    header_start(scan);
    return PHASE_COUNT;
}

static bool request(struct request_scan *scan, struct cursor *c,
                    const struct request_limits *limits)
{
    enum phase phase = scan->phase;
    if (phase == PHASE_START) {
        if (c->at == c->end)
            return false;
        phase = request_start(scan, c);
    }
    if (phase == PHASE_INLINE)
        return inline_line(scan, c);
    if (phase <= PHASE_COUNT_LF) {
        if (!count_line(scan, c, limits, phase))
            return false;
        phase = PHASE_DOLLAR;
    }
    for (; scan->arg < scan->argc; scan->arg++) {
        if (!argument(scan, c, limits, phase))
            return false;
        phase = PHASE_DOLLAR;
    }
    return true;
}

static enum scan_result request_scan_stepwise(struct request_scan *scan,
                                              const struct request_limits *limits, const char *data,
                                              size_t n, size_t *used)
{
    struct cursor c = {data, data, data + n};
    bool whole = request(scan, &c, limits);
    *used = (size_t)(c.at - data);
    scan->at += *used;
    if (!whole)
        return scan->error == ERR_NONE ? SCAN_MORE : SCAN_BAD;
    scan->phase = PHASE_START;
    return SCAN_FRAME;
}

/*
 * Takes a whole multibulk request in memory. Returns the end of the request. NULL: the request is
 * not taken, and the scan must be reset.
 */
static inline const char *request_at_hand(struct request_scan *scan,
                                          const struct request_limits *limits, const char *begin,
                                          const char *end)
{
    uint32_t argc;
    const char *at = plain_header(begin, end, &argc);
    if (at == NULL || *begin != '*' || argc > limits->args)
        return NULL;
    for (uint32_t arg = 0; arg < argc; arg++) {
        uint32_t len;
        const char *data = plain_bulk(at, end, &len);
        if (data == NULL || *at != '$' || len > limits->bulk)
            return NULL;
        locate(scan, arg, (uint64_t)(data - begin), len);
        at = data + len + CRLF_LEN;
    }
    scan->argc = argc;
    scan->is_inline = false;
    scan->at = (uint64_t)(at - begin);
    return at;
}

enum scan_result request_scan(struct request_scan *scan, const struct request_limits *limits,
                              const char *data, size_t n, size_t *used)
{
    if (scan->phase == PHASE_START) {
        const char *next = request_at_hand(scan, limits, data, data + n);
        if (next != NULL) {
            *used = (size_t)(next - data);
            return SCAN_FRAME;
        }
    }
    return request_scan_stepwise(scan, limits, data, n, used);
}
