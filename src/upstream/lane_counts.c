#include "upstream/lane_counts.h"

const char *lane_home_name(enum lane_home home)
{
    static const char *const names[HOME_COUNT] = {
        [HOME_NONE] = "none",       [HOME_OPENING] = "opening", [HOME_SHARED] = "shared",
        [HOME_RETIRED] = "retired", [HOME_SPARE] = "spare",     [HOME_PRIVATE] = "private",
        [HOME_IDLE] = "idle",       [HOME_SCRIPT] = "script",   [HOME_DOOR] = "door",
    };
    return names[home];
}

const char *lane_loss_name(enum lane_loss loss)
{
    static const char *const names[LOSS_COUNT] = {
        [LOSS_CONNECT] = "connect", [LOSS_TIMEOUT] = "timeout", [LOSS_PROTOCOL] = "protocol", [LOSS_CLOSED] = "closed",
        [LOSS_AUTH] = "auth",       [LOSS_SYSTEM] = "system",   [LOSS_UNCLEAN] = "unclean",
    };
    return names[loss];
}
