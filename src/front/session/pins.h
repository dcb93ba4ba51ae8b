/*
 * Why a client keeps its private lane when no request needs one: what Redis remembers of the client on that lane.
 *
 * A pin that lasts ends with the connection: nothing that the client sends ends it, RESET included, and no other
 * client gets the lane afterwards. The others end with what they are about. client.h has the functions (pin_add ...).
 */
#ifndef WEIR_FRONT_PINS_H
#define WEIR_FRONT_PINS_H

#include <stdbool.h>

/* ROW(name, whether it lasts) */
#define PINS(ROW)                                                                                                      \
    ROW(WATCH, false)      /* keys are watched */                                                                      \
    ROW(TRACKING, false)   /* CLIENT TRACKING */                                                                       \
    ROW(NO_EVICT, false)   /* CLIENT NO-EVICT */                                                                       \
    ROW(NO_TOUCH, false)   /* CLIENT NO-TOUCH */                                                                       \
    ROW(RESET, false)      /* the lane has been reset for its owner, and RESET is not answered yet */                  \
    ROW(ID, true)          /* other clients may name this one by its id */                                             \
    ROW(UNKNOWN, true)     /* a command that weir does not know has done something */                                  \
    ROW(SESSION, true)     /* a transaction may have changed name, tracking or library */                              \
    ROW(DATABASE, true)    /* SELECT was queued in a transaction: weir does not know the database */                   \
    ROW(WAIT, true)        /* WAIT is about what is written on this lane */                                            \
    ROW(PASSTHROUGH, true) /* replies are not counted */

#define PIN_BIT_ROW(name, lasts) PIN_BIT_##name,
#define PIN_ROW(name, lasts) PIN_##name = 1U << PIN_BIT_##name,
#define PIN_LASTS_ROW(name, lasts) | ((lasts) ? PIN_##name : 0U)
enum { PINS(PIN_BIT_ROW) PIN_BITS };
_Static_assert(PIN_BITS <= 16, "struct client has 16 bits for pins");
enum pin { PINS(PIN_ROW) };
enum { PINS_THAT_LAST = 0U PINS(PIN_LASTS_ROW) };
#undef PIN_BIT_ROW
#undef PIN_ROW
#undef PIN_LASTS_ROW

#endif
