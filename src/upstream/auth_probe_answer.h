/*
 * What Redis says to a stranger, taken piece by piece: whom it takes him for.
 */
#ifndef WEIR_UPSTREAM_AUTH_PROBE_ANSWER_H
#define WEIR_UPSTREAM_AUTH_PROBE_ANSWER_H

#include <stddef.h>

#include "resp/glimpse.h"
#include "resp/scan.h"

enum auth_probe_verdict {
    AUTH_PROBE_MORE,
    AUTH_PROBE_SERVED,     /* anybody may ask */
    AUTH_PROBE_NEEDS_AUTH, /* nobody may without a password */
    AUTH_PROBE_UNKNOWN,    /* it has not said */
};

/* Zeroed. */
struct auth_probe_answer {
    struct reply_scan scan;
    struct glimpse glimpse;
};

/* The next bytes, which may be any. After anything but AUTH_PROBE_MORE the answer is over. */
enum auth_probe_verdict auth_probe_answer_take(struct auth_probe_answer *answer, const char *data, size_t n);

#endif
