/*
 * What sentinels say, in RESP3 or RESP2: replies and pushes, collected until they are whole, and
 * read.
 *
 * Own code, because the hiredis that weir is built with knows no RESP3. Nothing is allocated but
 * the bytes of one reply, at most SENTINEL_REPLY_MAX; a value is at most SENTINEL_DEPTH deep. Safe
 * on any bytes. Any thread.
 */
#ifndef WEIR_UPSTREAM_SENTINEL_REPLY_H
#define WEIR_UPSTREAM_SENTINEL_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "resp/scan.h"

#define SENTINEL_REPLY_MAX 65536 /* bytes of one reply: a hundred replicas with all their fields */
#define SENTINEL_DEPTH 8         /* a list of maps is 3 deep */

/* A reply that is being received. Zeroed: nothing has come. */
struct sentinel_inbox {
    struct reply_scan scan;
    struct bytes bytes;
};

/*
 * As reply_scan; also SCAN_BAD when it is too long. After SCAN_FRAME the whole reply is in *frame
 * until the next call.
 */
__attribute__((warn_unused_result)) enum scan_result sentinel_inbox_take(struct sentinel_inbox *inbox, const char *data,
                                                                         size_t n, size_t *used, struct slice *frame);
void sentinel_inbox_fini(struct sentinel_inbox *inbox);

enum said_kind {
    SAID_NIL,
    SAID_ERROR,
    SAID_TEXT, /* any value of one piece: a string, a number */
    SAID_LIST, /* an array, a set, or a map of names and values in turn */
    SAID_PUSH, /* as a list */
};

/* One value. Its parts point into the frame. */
struct said {
    enum said_kind kind;
    struct slice text;   /* of an error or a text */
    struct slice inside; /* the elements of a list, for said_next */
};

/*
 * The value in front of *rest, which then begins behind it. False: there is none, or it cannot be
 * read.
 */
__attribute__((warn_unused_result)) bool said_next(struct slice *rest, struct said *value);

/* The text under this name in a list of names and values. False: there is none. */
__attribute__((warn_unused_result)) bool said_field(const struct said *list, const char *name, struct slice *text);

/* The first `n` texts of a list. False: it has fewer elements, or one of them is no text. */
__attribute__((warn_unused_result)) bool said_texts(const struct said *list, struct slice *texts, size_t n);

#define SENTINEL_HOST 256 /* room for a name or the digits of an address */
#define SENTINEL_RUN_ID 64

/* A server, or another sentinel, that a sentinel tells of. */
struct sentinel_server {
    char host[SENTINEL_HOST];
    uint16_t port;
    uint64_t epoch;               /* its config-epoch; 0: not told */
    char run_id[SENTINEL_RUN_ID]; /* "": not told */
    bool is_failing_over;         /* a failover of this master is under way, so that another may be the master */
    bool is_down;                 /* the sentinel does not reach it, or has lost its link to the master */
};

/* Two texts as a host and a port. False: port 0, no host, or bytes that a host cannot have. */
__attribute__((warn_unused_result)) bool sentinel_read_address(struct slice host, struct slice port,
                                                               struct sentinel_server *server);

/*
 * An answer to SENTINEL MASTER, or an element of one to SENTINEL REPLICAS or SENTINELS. False: it
 * is none.
 */
__attribute__((warn_unused_result)) bool sentinel_read_server(const struct said *list, struct sentinel_server *server);

/* True if it is a message about this channel: *payload is what was published. */
__attribute__((warn_unused_result)) bool sentinel_read_message(const struct said *push, const char *channel,
                                                               struct slice *payload);

/* What an error says of the sentinel. */
enum sentinel_refusal {
    SENTINEL_WANTS_LOGIN,   /* NOAUTH */
    SENTINEL_REFUSES_LOGIN, /* WRONGPASS, or AUTH without a password being set */
    SENTINEL_FORBIDS,       /* NOPERM */
    SENTINEL_KNOWS_NO_NAME, /* no such master */
    SENTINEL_UNKNOWN,       /* an unknown command, or NOPROTO: too old, or no sentinel */
    SENTINEL_OTHER,
};

enum sentinel_refusal sentinel_judge_error(struct slice error);

#endif
