/*
 * What clients do: a row each.
 */
#ifndef WEIR_SIM_OPS_H
#define WEIR_SIM_OPS_H

#include "tests/sim/client.h"
#include "tests/sim/limits.h"

enum op_flags {
    OP_QUEUES = 1,      /* in MULTI it is queued */
    OP_CONTROL = 2,     /* no limit refuses it */
    OP_SUBSCRIBED = 4,  /* a subscriber may say it */
    OP_MULTI = 8,       /* in MULTI it is carried out */
    OP_ENDS = 16,       /* only in MULTI */
    OP_SUBSCRIBER = 32, /* only a subscriber */
    OP_BEGINS = 64,     /* a transaction */
    OP_BLOCKS = 128,    /* it may wait */
    OP_SILENT = 256,    /* what it says may be answered more often if it is refused */
    OP_ENTERS = 512,    /* whoever has not logged in may say it, to log in ... */
    OP_LEAVES = 1024,   /* ... or to go */
    OP_COMMON = 2048,   /* of LIMIT, where several clients ask about the same key */
};

struct op {
    const char *name;
    unsigned weight;
    unsigned flags;
    unsigned classes; /* that limits see in it */
    /* Ask: writes the request, and expects each answer. NULL: */
    void (*say)(struct client *client, struct act *act);
    /* Why it is wrong; NULL: it is right, and the client knows it now. */
    const char *(*judge)(struct client *client, const struct act *act, const struct reply *reply);
};

extern const struct op data_ops[];
extern const struct op transaction_ops[];
extern const struct op session_ops[];
extern const struct op script_ops[];
extern const struct op shared_ops[];
extern const struct op channel_ops[];
extern const struct op connection_ops[];
extern const struct op lock_ops[];
extern const struct op marks_ops[];
extern const struct op limit_ops[];
extern const struct op own_limit_ops[];
extern const struct op exact_ops[];
extern const struct op limit_word_ops[];
extern const struct op blocking_ops[];
extern const struct op rude_ops[];
extern const struct op catalog_ops[];
extern const struct op operator_ops[];
extern const struct op renewed_ops[];
extern const struct op forms_ops[];
extern const struct op large_ops[];
extern const struct op cell_ops[];
extern const struct op slow_ops[];
extern const struct op place_ops[];

#define WORD_ROOM 64

/* Into `text`, and that. */
__attribute__((format(printf, 2, 3))) struct slice print(char text[WORD_ROOM], const char *format, ...);

/* What is there under its own keys, whichever command has asked for it or put it there. */
const char *judge_get(struct client *client, const struct act *act, const struct reply *reply);
const char *judge_set(struct client *client, const struct act *act, const struct reply *reply);
const char *judge_select(struct client *client, const struct act *act, const struct reply *reply);
const char *judge_select_none(struct client *client, const struct act *act, const struct reply *reply);

/* Which of USERS has the keys that it says to LIMIT now: 0 where all have the same. */
unsigned limit_owner(const struct client *client);

/* Value `i` of `n` of what LIMIT decides, which RESP3 has in a map. False: it is not there. */
bool limit_field(const struct reply *reply, size_t i, size_t n, struct reply *out);

/* Does it come by itself, of a channel? */
bool channel_is_message(const struct reply *reply);
/* Of what comes by itself; as judge. */
const char *channel_judge_message(struct client *client, const struct reply *reply);

/* A transaction is over, whatever became of it. */
void transaction_end(struct session *session);

void shared_fini(void);

/* One of those that fit, by weight and the client's chance. */
const struct op *op_draw(struct client *client);
const struct op *op_named(struct slice name);

/* It is nobody for Redis, or weir has not noticed yet that it is somebody. */
bool may_be_stranger(const struct client *client, const struct act *act);

/* A reply to something else than `act`'s own: an error that anything may be answered with here. */
bool is_excused(const struct client *client, const struct act *act, const struct reply *reply);

#endif
