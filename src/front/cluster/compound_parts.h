/*
 * The parts of a compound (compound.h): what each is sent, where it goes, and its reply.
 *
 * A part is over once: when its reply is there, or when it is lost. A part of several keys that hears TRYAGAIN
 * becomes as many single keys, with replies that are joined to its own. The worker's thread.
 */
#ifndef WEIR_FRONT_COMPOUND_PARTS_H
#define WEIR_FRONT_COMPOUND_PARTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/list.h"
#include "front/route/hop.h"
#include "front/route/lent.h"
#include "limit/command/scan_cursor.h"
#include "limit/command/slot.h"
#include "limit/command/travel.h"

struct compound;

/* The parts of one compound that go to one node, and have found a lane there: a train of hop.h. */
struct convoy {
    struct hop hop;
    struct compound *compound;
    struct convoy *next;  /* in compound.convoys */
    struct bytes replies; /* to all of them, once the last has come */
    uint32_t n, n_heard;  /* parts; of them, those with a reply, or not run */
    struct convoy_part {
        uint32_t part;
        size_t end; /* of its reply in the replies; empty: it was not run, and is a hop of its own */
    } parts[];
};

struct portion {
    struct compound *compound;
    struct portion *whole;  /* of which this is one key; NULL: it is none */
    struct portion *keys;   /* the single keys that it has become; heap; NULL: it has not */
    uint32_t n_left;        /* of these, not over */
    uint32_t index;         /* in the compound; of a single key its index in the request */
    struct bytes reply;     /* heap */
    struct slice in_convoy; /* its reply, where it came in a convoy's */
    uint16_t row;           /* SLOT_UNSERVED: it goes by itself */
    bool is_over;
    union {
        struct hop hop;
        struct lent lent; /* compound.is_lent */
    } way;
};

/* Where the reply stands among the client's: kept for reuse, for front/route/replies.h may remember it after its run has ended. */
struct compound_source {
    struct reply_source source;
    struct compound_source *next; /* in compounds.sources */
};

/* All of one client. */
struct compounds {
    struct list all;                 /* struct compound, oldest first */
    struct compound_source *sources; /* that none has now; heap */
};

struct compound {
    struct list in_client; /* compounds.all */
    struct client *client;
    struct compound_source *source; /* NULL: it has no position yet, or any more */
    struct bytes request;           /* a copy, while it is under way */
    struct slot_split split;        /* FANOUT_SLOTS, FANOUT_WRITTEN */
    struct scan_order order;        /* FANOUT_SCAN */
    struct scan_place place;
    struct portion *parts;
    struct convoy *convoys; /* of its parts; heap */
    uint32_t n_parts;
    uint32_t n_left; /* parts and convoys that are not over, and one while they are being started */
    uint64_t bytes;  /* of replies that are kept */
    void (*done)(void *arg,
                 struct slice reply); /* hears its end in the client's place; NULL: it is a request of its own */
    void *arg;
    uint64_t tag;
    uint32_t run; /* its position in replies, where its hops have their order from; not used key by key */
    uint64_t arrived_ns;
    uint32_t waited_us;
    uint8_t fanout; /* enum fanout */
    uint8_t join;   /* enum join */
    uint8_t counted;
    bool
        is_lent; /* its parts go on lent lanes; the client waits for its end before it asks for anything more: WAIT_ANSWER */
    bool is_muted; /* its reply is thrown away */
    bool is_lost;  /* a part will not be answered: the client is closed, or about to be */
};

/* compound.c: all parts are over. */
void compound_over(struct compound *compound);

/* Begin: parts go to their slots, to the masters, to all nodes. False: out of memory, and the client is closed. */
bool parts_start(struct compound *compound, const struct request *request);

/* The same of a compound of one slot, with keys that go one by one. */
bool parts_start_keys(struct compound *compound);

/* True if the client has written, so that there are masters for WAIT. */
bool parts_has_written(const struct client *client);

/* What the parts have answered, as one reply. */
void parts_join(const struct compound *compound, struct build *out);

/* Parts on lent lanes look again; are let go. */
void parts_go_on(struct compound *compound);
void parts_leave(struct compound *compound);

/* The client has ended its side: what blocks is given up. */
void parts_hurry(struct compound *compound);

void parts_free(struct compound *compound);

#endif
