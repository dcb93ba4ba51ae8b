/*
 * What Redis says to a stranger, taken piece by piece: whom it takes him for.
 */
#ifndef WEIR_UPSTREAM_SENTRY_ANSWER_H
#define WEIR_UPSTREAM_SENTRY_ANSWER_H

#include <stddef.h>

#include "resp/glimpse.h"
#include "resp/scan.h"

enum sentry_verdict {
    SENTRY_MORE,
    SENTRY_SERVED,     /* anybody may ask */
    SENTRY_NEEDS_AUTH, /* nobody may without a password */
    SENTRY_UNKNOWN,    /* it has not said */
};

/* Zeroed. */
struct sentry_answer {
    struct reply_scan scan;
    struct glimpse glimpse;
};

/* The next bytes, which may be any. After anything but SENTRY_MORE the answer is over. */
enum sentry_verdict sentry_answer_take(struct sentry_answer *answer, const char *data, size_t n);

#endif
