#include "upstream/login/auth_probe_answer.h"

/* What is neither the number asked for nor an error says nothing about who may come in. */
enum auth_probe_verdict auth_probe_answer_take(struct auth_probe_answer *answer, const char *data, size_t n)
{
    size_t used;
    enum scan_result result = reply_scan(&answer->scan, data, n, &used);
    glimpse_feed(&answer->glimpse, data, used);
    if (result == SCAN_MORE)
        return AUTH_PROBE_MORE;
    if (result == SCAN_BAD || used < n)
        return AUTH_PROBE_UNKNOWN;
    if (glimpse_starts(&answer->glimpse, SLICE("-NOAUTH")))
        return AUTH_PROBE_NEEDS_AUTH;
    char type = glimpse_type(&answer->glimpse);
    return type == ':' || type == '-' ? AUTH_PROBE_SERVED : AUTH_PROBE_UNKNOWN;
}
