/*
 * The parts of a compound (compound.h): the request of each part, its node, and its reply.
 *
 * A part ends exactly once: with its reply, or as lost. A part of several keys that receives
 * TRYAGAIN becomes one request for each key. The replies to these requests are joined to the reply
 * of the part. All functions run on the worker's thread.
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

/*
 * A convoy: the parts of one compound that go to one node, if a lane is available at the start.
 * weir sends a convoy as one hop of several requests (front/route/hop.h).
 */
struct convoy {
    struct hop hop;
    struct compound *compound;
    struct convoy *next;  /* in compound.convoys */
    struct bytes replies; /* replies to all parts, set when the last has arrived */
    uint32_t n, n_heard;  /* number of parts; number of parts that are answered or were not run */
    struct convoy_part {
        uint32_t part;
        /*
         * offset in `replies` of the end of this part's reply; a part with an empty reply was not
         * run, and continues as a hop
         */
        size_t end;
    } parts[];
};

struct portion {
    struct compound *compound;
    struct portion *whole; /* the part that this single key belongs to; NULL: not a single key */
    struct portion *keys;  /* the single keys that the part was split into; heap; NULL: not split */
    uint32_t n_left;       /* unfinished entries of `keys` */
    /* number of the part in the compound; for a single key its number in the request */
    uint32_t index;
    struct bytes reply;     /* heap */
    struct slice in_convoy; /* the part's reply inside the replies of a convoy */
    uint16_t row;           /* row of the part's convoy; SLOT_UNSERVED: sent alone */
    bool is_over;
    union {
        struct hop hop;
        struct lent lent; /* if compound.is_lent */
    } way;
};

/*
 * The position of a compound's reply among the client's replies. A source is not freed but reused,
 * because front/route/replies.h may refer to a source after the reply is delivered.
 */
struct compound_source {
    struct reply_source source;
    struct compound_source *next; /* in compounds.sources */
};

/* All compounds of one client. */
struct compounds {
    struct list all;                 /* struct compound, oldest first */
    struct compound_source *sources; /* unused sources; heap */
};

struct compound {
    struct list in_client; /* in compounds.all */
    struct client *client;
    struct compound_source *source; /* NULL: the reply has no position */
    struct bytes request;           /* copy of the request */
    struct slot_split split;        /* for FANOUT_SLOTS, FANOUT_WRITTEN */
    struct scan_order order;        /* for FANOUT_SCAN */
    struct scan_position place;
    struct portion *parts;
    struct convoy *convoys; /* convoys of the compound's parts; heap */
    uint32_t n_parts;
    uint32_t n_left; /* unfinished parts and convoys, plus one while parts are being started */
    uint64_t bytes;  /* bytes of the kept replies */
    /* receives the reply, in place of the client; NULL: the client receives the reply */
    void (*done)(void *arg, struct slice reply);
    void *arg;
    uint64_t tag;
    /*
     * value of spread.order at this request, which orders the compound's hops; unused by
     * compound_by_keys
     */
    uint32_t run;
    uint64_t arrived_ns;
    uint32_t waited_us;
    uint8_t fanout; /* enum fanout */
    uint8_t join;   /* enum join */
    uint8_t counted;
    /*
     * parts go on lent lanes; the client's next request waits until the compound ends: WAIT_ANSWER
     */
    bool is_lent;
    bool is_muted; /* the reply is discarded */
    bool is_lost;  /* a part will not be answered: the client is closed, or about to be closed */
};

/* Called when all parts have ended; in compound.c. */
void compound_over(struct compound *compound);

/*
 * Starts the parts, for the slots of the keys, for all masters, or for all nodes. False if out of
 * memory; the client is then closed.
 */
bool parts_start(struct compound *compound, const struct request *request);

/*
 * Starts a compound of one slot with one request for each key. False if out of memory; the client
 * is then closed.
 */
bool parts_start_keys(struct compound *compound);

/* True if the client has written to a master that WAIT can ask. */
bool parts_has_written(const struct client *client);

/* Joins the replies of the parts to one reply. */
void parts_join(const struct compound *compound, struct build *out);

/* parts_go_on continues parts on lent lanes. parts_leave detaches parts on lent lanes. */
void parts_go_on(struct compound *compound);
void parts_leave(struct compound *compound);

/* Called when the client has half-closed: parts that block are given up. */
void parts_hurry(struct compound *compound);

void parts_free(struct compound *compound);

#endif
