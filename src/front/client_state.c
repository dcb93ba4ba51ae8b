#include "front/client_state.h"

#define BIT(state) (1U << (state))

static const unsigned followers[] = {
    [CLIENT_SHAKING] = BIT(CLIENT_OPEN) | BIT(CLIENT_CLOSED),
    [CLIENT_OPEN] = BIT(CLIENT_DRAINING) | BIT(CLIENT_CLOSING) | BIT(CLIENT_CLOSED),
    [CLIENT_DRAINING] = BIT(CLIENT_CLOSING) | BIT(CLIENT_CLOSED),
    [CLIENT_CLOSING] = BIT(CLIENT_OPEN) | BIT(CLIENT_CLOSED),
    [CLIENT_CLOSED] = 0,
};

bool client_state_may_follow(enum client_state from, enum client_state to)
{
    return (followers[from] & BIT(to)) != 0;
}
