#include "front/client/client_state.h"

#include <string.h>

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

static const struct wait_row {
    const char *name;
    const char *text;
} rows[WAIT_ROWS] = {
#define WAIT(reason, name, text) {name, text},
#include "front/waits.def"
#undef WAIT
};

_Static_assert(WAIT_ROWS <= 16, "a set of waits has 16 bits");

const char *client_wait_text(enum client_wait_row row)
{
    return rows[row].text;
}

size_t client_waits_print(unsigned waits, char out[CLIENT_WAITS_ROOM])
{
    char *at = out;
    for (unsigned row = 0; row < WAIT_ROWS; row++) {
        if ((waits & BIT(row)) == 0)
            continue;
        if (at > out)
            *at++ = ',';
        at = stpcpy(at, rows[row].name);
    }
    *at = '\0';
    return (size_t)(at - out);
}
