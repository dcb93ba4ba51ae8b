/*
 * Readers of Redis' messages about LIMIT calls: replies of scripts, and messages about releases.
 *
 * The input is a whole frame in memory, of any bytes, so each length is checked. False: the frame
 * does not have the expected form.
 */
#ifndef WEIR_QUOTA_ANSWER_H
#define WEIR_QUOTA_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/decision_request.h"
#include "quota/outcome.h"

struct answer {
    const char *at;
    const char *end;
};

/* Returns a reader of `text`, which may be any bytes. */
struct answer answer_of(struct slice text);

static inline bool answer_is_over(const struct answer *answer)
{
    return answer->at == answer->end;
}

/*
 * Reads an integer, or a bulk string that says why an integer is missing. The string goes into
 * *error; after an integer *error is unchanged.
 */
__attribute__((warn_unused_result)) bool answer_number(struct answer *answer, int64_t *number,
                                                       struct slice *error);

/* Reads an array header for exactly n elements: *first begins at the first element. */
__attribute__((warn_unused_result)) bool answer_begin(struct slice text, size_t n,
                                                      struct answer *first);

/*
 * Reads the integers that a script returned for one call, and the penalties of its keys. `numbers`
 * has room for quota_numbers(ask). `holds` is zeroed, one element for each key. If the script
 * reports an error for a key, *error is the text of that error. Else *error is unchanged.
 */
__attribute__((warn_unused_result)) bool quota_numbers_read(struct answer *answer,
                                                            const struct decision_request *ask,
                                                            int64_t *numbers,
                                                            struct quota_hold *holds,
                                                            struct slice *error);

/* The messages on the release channel. Clients can publish other messages on this channel. */
enum release_news {
    RELEASE_NOTHING,    /* another message: ignored */
    RELEASE_SUBSCRIBED, /* the subscription is confirmed */
    RELEASE_KEY,        /* a permit of *key has been released */
};

/*
 * `frame` may be any bytes; *key points into it. Only messages of exactly the kind "message" or
 * "subscribe" on this channel count.
 */
enum release_news release_read(struct slice frame, struct slice channel, struct slice *key);

#endif
