#include "upstream/lane_counts.h"

const char *lane_list_name(enum lane_list in)
{
    static const char *const names[LIST_COUNT] = {
        [LIST_NONE] = "none",       [LIST_OPENING] = "opening", [LIST_SHARED] = "shared",
        [LIST_RETIRED] = "retired", [LIST_SPARE] = "spare",     [LIST_PRIVATE] = "private",
        [LIST_IDLE] = "idle",       [LIST_SCRIPT] = "script",   [LIST_DOOR] = "door",
    };
    return names[in];
}

const char *lane_loss_name(enum lane_loss loss)
{
    static const char *const names[LOSS_COUNT] = {
        [LOSS_CONNECT] = "connect", [LOSS_TIMEOUT] = "timeout", [LOSS_PROTOCOL] = "protocol", [LOSS_CLOSED] = "closed",
        [LOSS_AUTH] = "auth",       [LOSS_SYSTEM] = "system",   [LOSS_UNCLEAN] = "unclean",
    };
    return names[loss];
}

const char *lane_redirect_name(enum lane_redirect redirect)
{
    static const char *const names[REDIRECT_COUNT] = {
        [REDIRECT_MOVED] = "moved",       [REDIRECT_ASK] = "ask",
        [REDIRECT_TRYAGAIN] = "tryagain", [REDIRECT_CLUSTERDOWN] = "clusterdown",
        [REDIRECT_GIVEN_UP] = "given-up",
    };
    return names[redirect];
}
