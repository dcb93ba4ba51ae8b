/*
 * Finds the end of one RESP frame. Nothing is copied or allocated, no objects are built, nothing
 * recurses.
 *
 * A scan can pause at every byte: the results do not depend on how the input is split. A zeroed
 * scan (memset or = {0}) stands at the start of a frame, as does a scan that has returned
 * SCAN_FRAME. After SCAN_BAD a scan must not be used again.
 */
#ifndef WEIR_RESP_SCAN_H
#define WEIR_RESP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum scan_result {
    SCAN_MORE,  /* all bytes were taken; the frame continues */
    SCAN_FRAME, /* a frame ends after the *used bytes that were taken */
    SCAN_BAD,   /* the frame breaks the protocol: see error */
};

/* ---- requests: multibulk and inline ---- */

#define SCAN_ARGS 3 /* number of leading arguments located while scanning */
/* bytes of an inline or header line without its end (PROTO_INLINE_MAX_SIZE of Redis) */
#define SCAN_LINE_MAX 65536
#define SCAN_BULK_MAX 536870912 /* Redis' default proto-max-bulk-len */

struct request_limits {
    uint32_t args; /* most arguments; more: ERR_PROTO_UNAUTH_MULTIBULK (only if below INT32_MAX) */
    uint32_t bulk; /* most bytes; more: ERR_PROTO_UNAUTH_BULK (only if below SCAN_BULK_MAX) */
};

/* Redis' limits before and after a client has authenticated. */
extern const struct request_limits request_limits_before_auth;
extern const struct request_limits request_limits_normal;

struct scan_arg {
    uint32_t off; /* from the first byte of the request; 0: not known yet */
    uint32_t len;
};

struct request_scan {
    uint64_t at;        /* bytes of this request taken so far */
    uint64_t bulk_left; /* bytes of the current argument still to come, without its CRLF */
    uint64_t number;    /* the header number being read */
    uint32_t argc;      /* announced arguments; 0 for inline and for an empty request */
    uint32_t arg;       /* index of the argument being read */
    uint32_t line;      /* bytes of the current line taken so far */
    uint8_t phase;
    bool is_inline;  /* the frame is a line of words: see argv_split */
    bool negative;   /* the header number began with '-' */
    bool not_number; /* the header line contains bytes that are no part of a number */
    enum err error;  /* valid after SCAN_BAD */
    char got;        /* the byte for ERR_PROTO_EXPECTED_DOLLAR */
    /* located arguments; after SCAN_FRAME min(argc, SCAN_ARGS) arguments are located */
    struct scan_arg args[SCAN_ARGS];
};

/*
 * Consumes *used bytes of one request; after SCAN_MORE *used is n. After SCAN_FRAME the fields
 * argc, is_inline, at (the frame's length) and args describe the frame until the next call. An
 * empty request (a blank line, "*0", "*-1") is a frame with argc 0, and has no reply.
 *
 * The scan buffers nothing. A caller can recognise a long argument early: after SCAN_MORE, `at` and
 * `bulk_left` show the argument's size. args[i] is set when the header of argument i is complete.
 */
__attribute__((warn_unused_result)) enum scan_result request_scan(
    struct request_scan *scan, const struct request_limits *limits, const char *data, size_t n,
    size_t *used);

/* Skips the next n <= bulk_left bytes of the argument without reading the bytes. */
static inline void request_scan_skip(struct request_scan *scan, size_t n)
{
    scan->bulk_left -= n;
    scan->at += n;
}

/* ---- replies: all of RESP2 and RESP3 ---- */

#define SCAN_OPEN_MAX (UINT64_C(1) << 40) /* unfinished elements in one reply (chosen) */
#define SCAN_COUNT_MAX INT32_MAX          /* elements (of a map: pairs) of one aggregate (chosen) */
/* bytes of one bulk (chosen): far above what Redis stores */
#define SCAN_REPLY_BULK_MAX (UINT64_C(1) << 36)
#define SCAN_DEPTH_MAX 60000 /* directly nested aggregate headers (chosen): scripts reach 8,000 */

struct reply_scan {
    uint64_t open;      /* elements still to come; 0 between frames */
    uint64_t bulk_left; /* bytes of the current bulk still to come, without its CRLF */
    uint64_t number;    /* the header number being read */
    uint8_t phase;
    uint8_t digits; /* number of digits in the header number */
    bool negative;  /* the header number began with '-' */
    uint16_t depth; /* aggregate headers since the last element that was no aggregate */
    bool is_top;    /* the element being read is the outermost one */
    char type;      /* type byte of the element being read */
    /*
     * type byte of the whole frame, 0 until known: '>' is a push; an attribute is part of the
     * following reply
     */
    char kind;
    uint8_t word;    /* state of a short line with checked content */
    uint32_t errors; /* number of frames that were errors; wraps around */
};

/* True if a frame of this kind is an error. */
static inline bool scan_is_error(char kind)
{
    return kind == '-' || kind == '!';
}

/*
 * Scans a reply as request_scan scans a request. SCAN_BAD has no reason: the caller must close the
 * connection.
 */
__attribute__((warn_unused_result)) enum scan_result reply_scan(struct reply_scan *scan,
                                                                const char *data, size_t n,
                                                                size_t *used);

/*
 * Fast path between frames: consumes at most `most` whole replies, as long as each is a short
 * status, error, integer or bulk. Anything else is left to reply_scan. Changes only `errors` of the
 * scan. Returns the number of replies, which took *used bytes.
 */
__attribute__((warn_unused_result)) uint32_t reply_scan_plain(struct reply_scan *scan,
                                                              const char *data, size_t n,
                                                              uint32_t most, size_t *used);

#endif
