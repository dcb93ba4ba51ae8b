/*
 * Reads the answer to auth_probe's question, which may come in pieces: are connections that do not log in served?
 */
#ifndef WEIR_UPSTREAM_AUTH_PROBE_ANSWER_H
#define WEIR_UPSTREAM_AUTH_PROBE_ANSWER_H

#include <stddef.h>

#include "resp/glimpse.h"
#include "resp/scan.h"

enum auth_probe_verdict {
    AUTH_PROBE_MORE,       /* the answer goes on */
    AUTH_PROBE_SERVED,     /* they are */
    AUTH_PROBE_NEEDS_AUTH, /* they are not: -NOAUTH */
    AUTH_PROBE_UNKNOWN,    /* it does not say */
};

/* Zeroed: nothing has come. */
struct auth_probe_answer {
    struct reply_scan scan;
    struct glimpse glimpse;
};

/* The next bytes, which may be any. After anything but AUTH_PROBE_MORE the answer is over. */
enum auth_probe_verdict auth_probe_answer_take(struct auth_probe_answer *answer, const char *data, size_t n);

#endif
