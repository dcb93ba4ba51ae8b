/*
 * A reply as a client reads it: where it ends, what it is, what lies in it. Strict: what no server may send is bad.
 */
#ifndef WEIR_SIM_REPLY_H
#define WEIR_SIM_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

#define REPLY_MORE 0
#define REPLY_BAD SIZE_MAX
#define REPLY_DEPTH_MAX 128 /* what a script may nest is less */

struct reply {
    char type; /* + - : $ * % ~ > _ # , = ( | */
    bool is_nil;
    int64_t number;    /* of an integer; or how many elements, those of a map counted singly, pushes among them not */
    struct slice text; /* of a line or a bulk */
    struct slice whole;
    struct slice inside; /* the elements' bytes */
};

/* How far a reply that comes in pieces has been read: its beginning need not be read again. From zero. */
struct reply_reader {
    size_t at;
    unsigned depth;
    struct reply_level {
        int64_t left; /* elements to come */
        char type;
    } levels[REPLY_DEPTH_MAX];
};

/* As reply_read. While it answers REPLY_MORE, `data` is to begin with the same bytes each time. */
size_t reply_go_on(struct reply_reader *reader, struct slice data, struct reply *out);

/* The first reply in `data`, its size; REPLY_MORE: it is not all here; REPLY_BAD: it never will be. */
size_t reply_read(struct slice data, struct reply *out);

/* The next element that is no push: out of *inside, which is shortened. False: there is none. */
bool reply_next(struct slice *inside, struct reply *out);

/* Element `i` of an aggregate. False: it has not so many. */
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
    return reply->type == type && reply->text.len >= text.len && memcmp(reply->text.at, text.at, text.len) == 0;
}

#endif
