#include "upstream/sentry_answer.h"

/* What is neither the number asked for nor an error says nothing about who may come in. */
enum sentry_verdict sentry_answer_take(struct sentry_answer *answer, const char *data, size_t n)
{
    size_t used;
    enum scan_result result = reply_scan(&answer->scan, data, n, &used);
    glimpse_feed(&answer->glimpse, data, used);
    if (result == SCAN_MORE)
        return SENTRY_MORE;
    if (result == SCAN_BAD || used < n)
        return SENTRY_UNKNOWN;
    if (glimpse_starts(&answer->glimpse, SLICE("-NOAUTH")))
        return SENTRY_NEEDS_AUTH;
    char type = glimpse_type(&answer->glimpse);
    return type == ':' || type == '-' ? SENTRY_SERVED : SENTRY_UNKNOWN;
}
