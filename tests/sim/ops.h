/* The commands of clients: a row for each. */
#ifndef WEIR_SIM_OPS_H
#define WEIR_SIM_OPS_H

#include "tests/sim/client.h"
#include "tests/sim/limits.h"

enum op_flags {
    OP_QUEUES = 1,      /* queued in MULTI */
    OP_CONTROL = 2,     /* no limit refuses the command */
    OP_SUBSCRIBED = 4,  /* allowed for a subscriber */
    OP_MULTI = 8,       /* carried out in MULTI */
    OP_ENDS = 16,       /* only in MULTI */
    OP_SUBSCRIBER = 32, /* only for a subscriber */
    OP_BEGINS = 64,     /* begins a transaction */
    OP_BLOCKS = 128,    /* may block */
    OP_SILENT = 256,    /* a refused command may get more replies than expected */
    OP_ENTERS = 512,    /* allowed without a login: logs in ... */
    OP_LEAVES = 1024,   /* ... or disconnects */
    OP_COMMON = 2048,   /* a LIMIT command on a key that several clients use */
};

struct op {
    const char *name;
    unsigned weight;
    unsigned flags;
    unsigned classes; /* enum limit_class: its classes for limits */
    /* Writes the request, and expects each of its replies. */
    void (*say)(struct client *client, struct act *act);
    /* NULL: the reply is right, and the session is updated; else the error. */
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

/* Prints into `text`, and returns it. */
__attribute__((format(printf, 2, 3))) struct slice print(char text[WORD_ROOM], const char *format,
                                                         ...);

/* Judge the client's own keys, whichever command has read or written them. */
const char *judge_get(struct client *client, const struct act *act, const struct reply *reply);
const char *judge_set(struct client *client, const struct act *act, const struct reply *reply);
const char *judge_select(struct client *client, const struct act *act, const struct reply *reply);
const char *judge_select_none(struct client *client, const struct act *act,
                              const struct reply *reply);

/* Which of USERS owns the LIMIT keys that the client uses now: 0 where all users share them. */
unsigned limit_owner(const struct client *client);

/*
 * Element `i` of the `n` of a decision of LIMIT, a map in RESP3. False: there is no such element.
 */
bool limit_field(const struct reply *reply, size_t i, size_t n, struct reply *out);

/* True if the reply is a message of a channel. */
bool channel_is_message(const struct reply *reply);
/* Judges a push message; result as of `judge`. */
const char *channel_judge_message(struct client *client, const struct reply *reply);

/* Resets the transaction's state after EXEC, DISCARD or an abort. */
void transaction_end(struct session *session);

void shared_fini(void);

/* Draws an op that fits, by weight and the client's random stream. */
const struct op *op_draw(struct client *client);
const struct op *op_named(struct slice name);

/* True if the client has no login, or weir has not noticed the login yet. */
bool may_be_stranger(const struct client *client, const struct act *act);

/* True if the reply is an error that any request may get here. */
bool is_excused(const struct client *client, const struct act *act, const struct reply *reply);

#endif
