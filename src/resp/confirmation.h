/*
 * Parses the confirmation of a SUBSCRIBE or UNSUBSCRIBE command: an array or a push of a word, a
 * channel and the number of subscriptions left.
 *
 *     *3  $9 subscribe  $4 news  :1        >3  $12 sunsubscribe  _  :0
 *
 * Pure. The input is a whole frame.
 */
#ifndef WEIR_RESP_CONFIRMATION_H
#define WEIR_RESP_CONFIRMATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/slice.h"

struct confirmation {
    struct slice word;
    struct slice channel; /* empty for nil */
    bool has_channel;     /* false for nil: the client had no subscription */
    size_t count_at;      /* offset of the last line, which holds the number of subscriptions */
    int64_t count;
};

/* False if the frame is no such array or push. */
__attribute__((warn_unused_result)) bool confirmation_read(struct slice frame, struct confirmation *out);

#endif
