/*
 * One request on its way through front/.
 */
#ifndef WEIR_FRONT_REQUEST_H
#define WEIR_FRONT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/slice.h"
#include "front/client/reply_mode.h"
#include "front/front.h"
#include "limit/command/command.h"
#include "limit/command/hello.h"
#include "limit/command/keys.h"
#include "resp/scan.h"

/* What becomes of a request. */
enum route {
    ROUTE_TAKEN,   /* it is on its way, or has been answered */
    ROUTE_WAIT,    /* not yet; the client's link will be woken */
    ROUTE_STOP,    /* the client takes nothing more */
    ROUTE_GOES_ON, /* within route: the next step is to be taken */
};

struct request {
    const struct command *command;
    struct slice bytes; /* as multibulk; of a large request the beginning */
    struct slice name;
    struct slice args[2]; /* the two after the name, where they are at hand */
    uint32_t argc;
    const struct hello *hello; /* of HELLO, once the door has been passed */
    size_t n_bytes;            /* as they came */
    uint8_t counted;           /* COUNTED*: it was, by limits on calls in flight */
    bool is_large;
    bool is_refused; /* found on its way: nothing of it travels */
    bool is_again;   /* Redis has refused it, and it goes to a shared lane once more (again.h) */
    bool is_carried; /* a node of a cluster has refused it, and it goes to the client's own lane once more (carry.h) */
    bool is_paid;    /* its bytes have been counted, for whoever it was then */
};

/* Of a large request not all arguments are at hand: no effect that needs them can be followed. */
static inline bool request_effect_is_known(const struct request *request)
{
    enum effect effect = (enum effect)request->command->effect;
    return !request->is_large || effect == EFFECT_EXEC || effect == EFFECT_WATCH || effect == EFFECT_ADMIT;
}

/*
 * True if it is large, and would change the client's user, name, tracking or library: weir cannot read that. It must
 * not travel.
 */
static inline bool request_is_unseen(const struct request *request)
{
    enum effect effect = (enum effect)request->command->effect;
    return request->is_large && (effect == EFFECT_AUTH || effect == EFFECT_HELLO || effect == EFFECT_NAME ||
                                 effect == EFFECT_TRACKING || effect == EFFECT_LIBRARY);
}

/*
 * What it will do to the connection; nothing, if Redis is going to refuse it for its number of arguments. But EXEC ends
 * its transaction in any case.
 */
static inline enum effect request_effect(const struct request *request)
{
    int arity = request->command->arity;
    bool fits = arity >= 0 ? request->argc == (uint32_t)arity : request->argc >= (uint32_t)-arity;
    fits |= request->command->effect == EFFECT_EXEC;
    return fits && request_effect_is_known(request) ? (enum effect)request->command->effect : EFFECT_NONE;
}

/* REPLY_NONE: it is no CLIENT REPLY that does anything. */
static inline enum reply_word request_reply_word(const struct request *request)
{
    bool is_one = request->command->flow == FLOW_REPLY && request->argc == 3;
    return is_one ? reply_word_of(request->args[1]) : REPLY_NONE;
}

/* Is it one that Redis does not answer itself, if it lets it be used? */
static inline bool request_silences(const struct request *request)
{
    enum reply_word word = request_reply_word(request);
    return word == REPLY_OFF || word == REPLY_SKIP;
}

/* Does it say who somebody is? */
static inline bool request_logs_in(const struct request *request)
{
    enum effect effect = request_effect(request);
    return effect == EFFECT_AUTH || (effect == EFFECT_HELLO && hello_logs_in(request->bytes));
}

/* May it wait in Redis, as far as its arguments are at hand? */
static inline bool request_blocks(const struct request *request)
{
    return keys_may_wait(request->command, request->bytes, request->argc);
}

/* The same, and yes where the argument that says so is not at hand. */
static inline bool request_may_block(const struct request *request)
{
    return request->command->blocks && (!keys_may_block(request->command) ||
                                        keys_block(request->command, request->bytes, request->argc) != KEYS_ABSENT);
}

/*
 * A request of those bytes: its words, and its row of the command table. The rest of it stays as it
 * is.
 */
void describe_request(struct request *request, const struct front *front, const struct request_scan *scan,
                      struct slice bytes);

/* `command`, unless the operator leaves it to Redis: then it is unknown here. */
const struct command *request_as_configured(const struct front *front, const struct command *command);

/* The bytes of a request that does nothing to the client's session; else none: it cannot be sent again. */
struct slice request_kept_bytes(const struct request *request);

/*
 * ---- what Redis answers to a command, or a subcommand, that it does not know; for names that must
 * not reach it ----
 *
 * Redis finds names by a hash of all their bytes but compares up to a NUL, so that "GET\0x" can
 * happen to run as GET: such a name is answered here, as Redis answers a name that it does not
 * find.
 */

#define UNKNOWN_SHOWN 128 /* bytes of a name, and of a command's arguments, that Redis repeats */
#define UNKNOWN_ROOM (3 * UNKNOWN_SHOWN + 128)

/* True if the name holds a NUL, so that Redis may run the part before it. */
static inline bool unknown_by_luck(struct slice name)
{
    return memchr(name.at, '\0', name.len) != NULL;
}

/* The error reply, in `out`, which has room for UNKNOWN_ROOM bytes. Redis before 7.0 words it otherwise. */
struct slice unknown_command(const struct request *request, bool is_before_7, char *out);

/* The same for the first argument of a command that has subcommands. */
struct slice unknown_subcommand(const struct request *request, bool is_before_7, char *out);

#endif
