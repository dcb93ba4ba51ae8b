/*
 * Finds where one RESP frame ends. Nothing is copied or allocated, no objects are built, nothing recurses.
 *
 * A scan can be resumed at every byte: whatever the pieces it is fed, the answers are the same.
 * A scan of zero bytes (memset or = {0}) stands at the start of a frame, and so does one that has just answered
 * SCAN_FRAME. After SCAN_BAD it must not be fed again.
 */
#ifndef WEIR_RESP_SCAN_H
#define WEIR_RESP_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum scan_result {
    SCAN_MORE,  /* all bytes were taken; the frame goes on */
    SCAN_FRAME, /* a frame ends after the *used bytes that were taken */
    SCAN_BAD,   /* the frame breaks the protocol: see error */
};

/* ---- requests: multibulk and inline ---- */

#define SCAN_ARGS 3             /* how many leading arguments are located while scanning */
#define SCAN_LINE_MAX 65536     /* bytes of an inline or header line that may lack their end */
#define SCAN_BULK_MAX 536870912 /* Redis' default proto-max-bulk-len */

struct request_limits {
    uint32_t args; /* more: ERR_PROTO_UNAUTH_MULTIBULK (only below INT32_MAX) */
    uint32_t bulk; /* longer, in bytes: ERR_PROTO_UNAUTH_BULK (only below SCAN_BULK_MAX) */
};

/* What Redis allows before a client has authenticated, and after. */
extern const struct request_limits request_limits_before_auth;
extern const struct request_limits request_limits_normal;

struct scan_arg {
    uint32_t off; /* from the first byte of the request; 0: not known yet */
    uint32_t len;
};

struct request_scan {
    uint64_t at;        /* bytes of this request taken so far */
    uint64_t bulk_left; /* bytes of the current argument still to come, its CRLF not counted */
    uint64_t number;    /* the header number being read */
    uint32_t argc;      /* arguments announced; 0 for inline and for an empty request */
    uint32_t arg;       /* index of the argument being read */
    uint32_t line;      /* bytes of the current line taken so far */
    uint8_t phase;
    bool is_inline;                  /* the frame is one line of words: see argv_split */
    bool negative;                   /* the header number began with '-' */
    bool not_number;                 /* the header line holds other bytes than a number has */
    enum err error;                  /* valid after SCAN_BAD */
    char got;                        /* the byte for ERR_PROTO_EXPECTED_DOLLAR */
    struct scan_arg args[SCAN_ARGS]; /* located arguments: min(argc, SCAN_ARGS) of them after SCAN_FRAME */
};

/*
 * Consume bytes of one request: *used of them; after SCAN_MORE that is n.
 * After SCAN_FRAME the fields argc, is_inline, at (the frame's length) and args describe the frame until the next
 * call. An empty request (a blank line, "*0", "*-1") is a frame with argc 0: it has no reply.
 * A request whose current argument alone is known to be long is not buffered here: the caller looks at `at` and
 * `bulk_left` after SCAN_MORE and at args[i], which is set as soon as argument i's header is complete.
 */
__attribute__((warn_unused_result)) enum scan_result request_scan(struct request_scan *scan,
                                                                  const struct request_limits *limits, const char *data,
                                                                  size_t n, size_t *used);

/* The next n bytes of the request, n <= bulk_left, were not looked at: they are content whatever they are. */
static inline void request_scan_skip(struct request_scan *scan, size_t n)
{
    scan->bulk_left -= n;
    scan->at += n;
}

/* ---- replies: all of RESP2 and RESP3 ---- */

#define SCAN_OPEN_MAX (UINT64_C(1) << 40)       /* elements still open in one reply */
#define SCAN_COUNT_MAX INT32_MAX                /* elements (of a map: pairs) of one aggregate */
#define SCAN_REPLY_BULK_MAX (UINT64_C(1) << 36) /* bytes of one bulk: far above what Redis holds */
#define SCAN_DEPTH_MAX 60000                    /* aggregate headers directly inside one another: scripts reach 8,000 */

struct reply_scan {
    uint64_t open;      /* elements still to come; 0 between frames */
    uint64_t bulk_left; /* bytes of the current bulk still to come, its CRLF not counted */
    uint64_t number;    /* the header number being read */
    uint8_t phase;
    uint8_t digits;  /* of the header number */
    bool negative;   /* it began with '-' */
    uint16_t depth;  /* aggregate headers since the last element that was not one */
    bool is_top;     /* the element being read is inside no other */
    char type;       /* of the element being read */
    char kind;       /* type byte of the whole frame, 0 until it has come: '>' is a push; an attribute is part of the
                       reply it precedes */
    uint8_t word;    /* how much is there of a short line whose content is checked */
    uint32_t errors; /* how many frames have been errors; wraps around */
};

/* Is a frame of this kind an error? */
static inline bool scan_is_error(char kind)
{
    return kind == '-' || kind == '!';
}

/* As request_scan. SCAN_BAD gives no reason: the connection cannot be used any more. */
__attribute__((warn_unused_result)) enum scan_result reply_scan(struct reply_scan *scan, const char *data, size_t n,
                                                                size_t *used);

/*
 * Fast path, between frames only: consume at most `most` whole replies, as long as each is a short status, error,
 * integer or bulk; anything else is left to reply_scan. Of the scan only `errors` changes. Returns how many replies;
 * they took *used bytes.
 */
__attribute__((warn_unused_result)) uint32_t reply_scan_plain(struct reply_scan *scan, const char *data, size_t n,
                                                              uint32_t most, size_t *used);

#endif
