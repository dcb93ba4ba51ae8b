/*
 * Readers of what Redis sends about LIMIT calls: replies of scripts, and messages about releases.
 *
 * Each is a whole frame in memory, of any bytes: every length is checked. False: it does not have
 * the expected form.
 */
#ifndef WEIR_QUOTA_ANSWER_H
#define WEIR_QUOTA_ANSWER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"
#include "quota/ask.h"
#include "quota/outcome.h"

struct answer {
    const char *at;
    const char *end;
};

/* To read `text`, which may be any bytes. */
struct answer answer_of(struct slice text);

static inline bool answer_is_over(const struct answer *answer)
{
    return answer->at == answer->end;
}

/* Read an integer; or a bulk string with the reason why there is none, which goes into *error (else untouched). */
__attribute__((warn_unused_result)) bool answer_number(struct answer *answer, int64_t *number, struct slice *error);

/* `text` is an array header for exactly n elements: *first begins at the first of them. */
__attribute__((warn_unused_result)) bool answer_begin(struct slice text, size_t n, struct answer *first);

/*
 * Read the integers that a script returned for one call, and the penalties that its keys are under.
 * `numbers` has room for quota_numbers(ask); `holds` is zeroed, one for each key. If the script
 * reports an error for a key, *error is its text, else untouched.
 */
__attribute__((warn_unused_result)) bool quota_numbers_read(struct answer *answer, const struct quota_ask *ask,
                                                            int64_t *numbers, struct quota_hold *holds,
                                                            struct slice *error);

/* What weir hears where it listens for releases. Clients can make other messages arrive there. */
enum release_news {
    RELEASE_NOTHING,    /* something else: ignored */
    RELEASE_SUBSCRIBED, /* the subscription is confirmed */
    RELEASE_KEY,        /* a holder of *key has released */
};

/* `frame` may be any bytes; *key points into it. Only exactly "message" or "subscribe" of this channel counts. */
enum release_news release_read(struct slice frame, struct slice channel, struct slice *key);

#endif
