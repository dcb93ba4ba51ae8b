/*
 * One request on its way through front/, and the arguments that front/ reads.
 */
#ifndef WEIR_FRONT_REQUEST_H
#define WEIR_FRONT_REQUEST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"
#include "base/slice.h"
#include "front/client/reply_mode.h"
#include "front/front.h"
#include "limit/command/command.h"
#include "limit/command/keys.h"
#include "resp/scan.h"

/* ---- AUTH and HELLO ---- */

/*
 * AUTH and HELLO are parsed as strictly as in Redis 7.2 and later: user and password, protocol
 * version, client name. All options of HELLO are read, from left to right, before an option takes
 * effect. Only one AUTH is allowed; Redis takes the last of several.
 *
 * Pure: nothing is allocated; all slices point into the request.
 */
struct hello {
    struct slice user;
    struct slice password;
    struct slice name;
    uint8_t protocol; /* 2 or 3; 0: not given */
    bool has_auth;
    bool is_short; /* AUTH password: the user is `default` */
    bool has_name;
};

/*
 * Reads the arguments of AUTH or HELLO. `request` is a whole multibulk request that request_scan
 * has accepted. False: `error` (HELLO_ERROR_ROOM bytes) is the error that Redis would return, "ERR
 * ..." without the '-'. The error may contain bytes of the request.
 */
#define HELLO_ERROR_ROOM 256
__attribute__((warn_unused_result)) bool hello_read(struct hello *hello, struct slice request,
                                                    char *error);
__attribute__((warn_unused_result)) bool hello_read_auth(struct hello *hello, struct slice request,
                                                         char *error);

/*
 * True if this HELLO has an AUTH, and no argument before the AUTH is one that every version of
 * Redis refuses.
 */
bool hello_logs_in(struct slice request);

/* True if the name has only printable characters and no spaces, as Redis requires. */
bool hello_is_name(struct slice name);
#define HELLO_BAD_NAME "ERR Client names cannot contain spaces, newlines or special characters."

/* ---- the request ---- */

enum route {
    ROUTE_TAKEN,   /* the request was sent or answered */
    ROUTE_WAIT,    /* the request must wait; the client's link will be woken */
    ROUTE_STOP,    /* the client takes no more requests */
    ROUTE_GOES_ON, /* used within route.c only: continue with the next step */
};

struct request {
    const struct command *command;
    struct slice bytes; /* as multibulk; only the beginning of a large request */
    struct slice name;
    struct slice args[2]; /* the two arguments after the name, if buffered */
    uint32_t argc;
    /* parsed arguments of AUTH and HELLO, set by route.c; NULL: wrong arguments */
    const struct hello *hello;
    size_t n_bytes;  /* size as received */
    uint8_t counted; /* COUNTED*: limits on calls in flight that counted the request */
    bool is_large;
    bool is_refused; /* set by the router: no part of the request is sent */
    /* Redis refused the request, and it is sent to a shared lane again (again.h) */
    bool is_again;
    /*
     * a cluster node refused the request, and it is sent to the client's private lane again
     * (carry.h)
     */
    bool is_carried;
    bool is_paid; /* the bytes are charged already, to the user before the login */
};

/* False: some arguments of a large request are not buffered, and the effect depends on them. */
static inline bool request_effect_is_known(const struct request *request)
{
    enum effect effect = (enum effect)request->command->effect;
    return !request->is_large || effect == EFFECT_EXEC || effect == EFFECT_WATCH ||
           effect == EFFECT_ADMIT;
}

/*
 * True if the request is large and would change the client's user, name, tracking or library. weir
 * cannot read the request, so the request must not be sent.
 */
static inline bool request_is_unseen(const struct request *request)
{
    enum effect effect = (enum effect)request->command->effect;
    return request->is_large &&
           (effect == EFFECT_AUTH || effect == EFFECT_HELLO || effect == EFFECT_NAME ||
            effect == EFFECT_TRACKING || effect == EFFECT_LIBRARY);
}

/*
 * Returns the effect of the request on the connection. EFFECT_NONE if Redis will refuse the request
 * for its number of arguments. Exception: EXEC ends its transaction in any case.
 */
static inline enum effect request_effect(const struct request *request)
{
    int arity = request->command->arity;
    bool fits = arity >= 0 ? request->argc == (uint32_t)arity : request->argc >= (uint32_t)-arity;
    fits |= request->command->effect == EFFECT_EXEC;
    return fits && request_effect_is_known(request) ? (enum effect)request->command->effect
                                                    : EFFECT_NONE;
}

/*
 * Returns the argument of CLIENT REPLY. REPLY_NONE: the request is another command, or its argument
 * is invalid.
 */
static inline enum reply_word request_reply_word(const struct request *request)
{
    bool is_one = request->command->flow == FLOW_REPLY && request->argc == 3;
    return is_one ? reply_word_of(request->args[1]) : REPLY_NONE;
}

/* True if Redis does not answer the request, provided that the user may run it. */
static inline bool request_silences(const struct request *request)
{
    enum reply_word word = request_reply_word(request);
    return word == REPLY_OFF || word == REPLY_SKIP;
}

/* True if the request logs in. */
static inline bool request_logs_in(const struct request *request)
{
    enum effect effect = request_effect(request);
    return effect == EFFECT_AUTH || (effect == EFFECT_HELLO && hello_logs_in(request->bytes));
}

/* True if the request may wait in Redis, judged by the buffered arguments. */
static inline bool request_blocks(const struct request *request)
{
    return keys_may_wait(request->command, request->bytes, request->argc);
}

/* As request_blocks. Also true if the argument that decides this is not buffered. */
static inline bool request_may_block(const struct request *request)
{
    return request->command->blocks &&
           (!keys_may_block(request->command) ||
            keys_block(request->command, request->bytes, request->argc) != KEYS_ABSENT);
}

/* Sets the request's bytes, words and row of the command table. The other fields stay unchanged. */
void describe_request(struct request *request, const struct front *front,
                      const struct request_scan *scan, struct slice bytes);

/*
 * Returns `command`. Exception: if the configuration leaves `command` to Redis, returns the row of
 * unknown commands.
 */
const struct command *request_as_configured(const struct front *front,
                                            const struct command *command);

/*
 * Returns the bytes of a request without effect on the session. Empty for other requests, which
 * cannot be sent again.
 */
struct slice request_kept_bytes(const struct request *request);

/*
 * ---- Redis' answers to unknown commands and subcommands, where a name must not reach Redis ----
 *
 * Redis finds names by a hash of all their bytes but compares names up to a NUL. "GET\0x" can
 * therefore run as GET. weir answers a name with a NUL as Redis answers an unknown name.
 */

/* bytes of a name, and of the arguments, that Redis repeats in its error */
#define UNKNOWN_SHOWN 128
#define UNKNOWN_ROOM (3 * UNKNOWN_SHOWN + 128)

/* True if the name contains a NUL, so that Redis may run the part before the NUL. */
static inline bool unknown_by_luck(struct slice name)
{
    return memchr(name.at, '\0', name.len) != NULL;
}

/*
 * Returns the error reply, in `out` with room for UNKNOWN_ROOM bytes. The text differs before Redis
 * 7.0.
 */
struct slice unknown_command(const struct request *request, bool is_before_7, char *out);

/* As unknown_command, for the first argument of a command with subcommands. */
struct slice unknown_subcommand(const struct request *request, bool is_before_7, char *out);

/* ---- the time-out of a command that waits in Redis ---- */

/*
 * These functions compute how long a blocking command may still wait when the command is sent
 * again. A cluster ends the wait of a blocked client with MOVED when the slot goes to another node.
 * Pure.
 */

/*
 * Appends a copy of the whole request to `out`, with a time-out shorter by `waited_ns`, but of at
 * least 1 ms. A request that blocks without a time-out, or with a time-out that weir cannot read,
 * is copied unchanged. False: out of memory.
 */
__attribute__((warn_unused_result)) bool block_time_reduce(const struct command *command,
                                                           struct slice request, uint32_t argc,
                                                           uint64_t waited_ns, struct bytes *out);

/*
 * True if the request waits for entries added to a stream from now on: XREAD with `$`. Entries
 * added while the request is sent again are missed.
 */
bool block_time_is_from_now(const struct command *command, struct slice request, uint32_t argc);

#endif
