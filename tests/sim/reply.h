/*
 * A client's parser of replies: size, type and content. Strict: bytes that no server may send are
 * bad.
 */
#ifndef WEIR_SIM_REPLY_H
#define WEIR_SIM_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define REPLY_MORE 0
#define REPLY_BAD SIZE_MAX
#define REPLY_DEPTH_MAX 128 /* more than a script may nest */

struct reply {
    char type; /* + - : $ * % ~ > _ # , = ( | */
    bool is_nil;
    /*
     * value of an integer, or number of elements; map entries count twice, push messages among them
     * do not count
     */
    int64_t number;
    struct slice text; /* of a line or a bulk string */
    struct slice whole;
    struct slice inside; /* the bytes of the elements */
};

/*
 * Parser state for a reply that comes in pieces, so that its start is not parsed again. Starts as
 * zero.
 */
struct reply_reader {
    size_t at;
    unsigned depth;
    struct reply_level {
        int64_t left; /* elements to come */
        char type;
    } levels[REPLY_DEPTH_MAX];
};

/*
 * As reply_read, for one reply in pieces. After REPLY_MORE, `data` must begin with the same bytes.
 */
size_t reply_go_on(struct reply_reader *reader, struct slice data, struct reply *out);

/*
 * Parses the first reply in `data`. Returns its size; REPLY_MORE: incomplete; REPLY_BAD: invalid.
 */
size_t reply_read(struct slice data, struct reply *out);

/* Takes the next element from *inside, without push messages. False: no element is left. */
bool reply_next(struct slice *inside, struct reply *out);

/* Element `i` of an aggregate. False: there are fewer elements. */
bool reply_at(const struct reply *reply, size_t i, struct reply *out);

static inline bool reply_is(const struct reply *reply, char type, struct slice text)
{
    return reply->type == type && !reply->is_nil && slice_eq(reply->text, text);
}

static inline bool reply_is_ok(const struct reply *reply)
{
    return reply_is(reply, '+', SLICE("OK"));
}

static inline bool reply_is_integer(const struct reply *reply, int64_t number)
{
    return reply->type == ':' && reply->number == number;
}

static inline bool reply_begins(const struct reply *reply, char type, struct slice text)
{
    return reply->type == type && reply->text.len >= text.len &&
           memcmp(reply->text.at, text.at, text.len) == 0;
}

#endif
