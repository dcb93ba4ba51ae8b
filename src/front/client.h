/*
 * A client, from accept to close: its connection, the requests it has sent and not yet had taken, the replies it waits
 * for.
 *
 * Requests are taken one at a time and in order; while the next one cannot go yet (a lane is not ready, an answer must
 * come first) the client is held: its bytes wait in `intake`, reading stops when that is full, and whatever it waits
 * for wakes its link.
 */
#ifndef WEIR_FRONT_CLIENT_H
#define WEIR_FRONT_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/chain.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/slice.h"
#include "front/front.h"
#include "front/intake.h"
#include "net/link.h"
#include "resp/scan.h"
#include "upstream/lane.h"

/* A request of more bytes than this is not gathered first: it streams to a private lane as it comes. */
#define LARGE_REQUEST 65536
/*
 * Unanswered request bytes of one client on a shared lane, beyond which it gets its own: Redis reads its connections in
 * turns of 16 KiB, and so a flood on one of them holds nobody else up.
 */
#define SHARED_BYTES_MAX 32768
#define SHARED_CALLS_FEW 16 /* unanswered calls that are no flood, however long it goes on */
#define HEAVY_NS (10 * NS_PER_S)

/* A request that is too large to gather, on its way. */
struct passage {
    struct request_scan scan;
    bool is_refused; /* its bytes are thrown away */
};

/* What is done for a client that has ended its side while a command of its may block. */
struct ending {
    struct probe probe;
    struct client *client;
};

struct session;

/* What Redis remembers of a client, so that its lane cannot be anybody else's. */
enum {
    HOLD_WATCH = 1 << 0,
    HOLD_TRACKING = 1 << 1,
    HOLD_NO_EVICT = 1 << 2,
    HOLD_NO_TOUCH = 1 << 3,
    HOLD_PINNED = 1 << 4, /* for good: others may name it by its id, or weir does not know what it did */
};

struct client {
    struct link link;
    struct rider rider;
    struct front *front;
    struct list in_front;
    struct intake *intake;   /* NULL: nothing is waiting */
    struct passage *passage; /* NULL: no large request is passing */
    struct chain locals;     /* weir's own replies that earlier calls must precede */
    struct ending *ending;   /* NULL: none */
    char *refusal;           /* what Redis said when a lane for it could not be opened; NULL: nothing */
    struct session *session; /* NULL: nothing but the address is known */
    struct subject *subject; /* NULL: unlimited */
    struct lane *shared;     /* the lane of its session, while lanes_version is still current */
    uint32_t lanes_version;
    uint64_t heavy_until_ns; /* takes much at a time: has a lane of its own until then; 0: not */
    uint16_t policy;         /* index, with subject */
    uint8_t holds;           /* HOLD_*: why its private lane is still needed */
    bool is_urgent;          /* its own lane is in whatever database: for one call */
    bool has_own_lane;       /* rider.lane is its own, or is being opened */
    bool is_dressed;         /* its own lane bears its name */
    bool is_identity_queued; /* inside MULTI something was queued that changes who it is */
    bool was_refused;        /* the lane it waited for could not be opened */
    bool is_held;            /* no request is taken until an answer has come */
    bool is_leaving;         /* nothing more is taken; closed when all is answered and sent */
    bool is_eof;
    bool is_silent;  /* CLIENT REPLY OFF */
    bool skips_next; /* CLIENT REPLY SKIP came just before */
    bool in_multi;
    bool is_multi_broken;   /* MULTI itself could not travel: nothing until EXEC may */
    bool is_multi_unsure;   /* MULTI or DISCARD was sent and may be refused */
    bool is_raw_after_exec; /* what is queued answers in frames that cannot be counted */
    bool is_raw;
};

/* Output of any kind; may close the client when it is more than output-limit. */
void client_output(struct client *client, const char *data, size_t n);

/* weir's own reply, in its place after all earlier calls. */
void client_answer(struct client *client, struct slice reply);

/* Take nothing more; close when everything is answered and sent. */
void client_leave(struct client *client);

void client_close(struct client *client);
bool client_is_closed(const struct client *client);

#endif
