/*
 * Reads AUTH and HELLO, whole and strictly, as Redis does from 7.2 on: who a client says it is, and in which protocol
 * and by which name it goes on. HELLO's options are read from left to right before any of them takes effect; of AUTH
 * there may be one (Redis takes the last of several).
 *
 * Pure: nothing is allocated, all slices point into the request.
 */
#ifndef WEIR_LIMIT_HELLO_H
#define WEIR_LIMIT_HELLO_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

struct hello {
    struct slice user;
    struct slice password;
    struct slice name;
    uint8_t protocol; /* 2 or 3; 0: it does not say */
    bool has_auth;
    bool is_short; /* AUTH password: the user is `default` */
    bool has_name;
    struct slice
        wrong[3];    /* of what cannot be read: HELLO with these words alone is refused for the same reason, ... */
    uint8_t n_wrong; /* ... by every version, and does nothing; 0: it can be read */
};

/*
 * Whole multibulk requests that request_scan has accepted. False: `error` is what Redis would answer, "ERR ..." without
 * the '-'; it may hold bytes of the request.
 */
#define HELLO_ERROR_ROOM 256
__attribute__((warn_unused_result)) bool hello_read(struct hello *hello, struct slice request, char *error);
__attribute__((warn_unused_result)) bool hello_read_auth(struct hello *hello, struct slice request, char *error);

/* Is every byte of a client's name printable, as Redis wants it? */
bool hello_is_name(struct slice name);
#define HELLO_BAD_NAME "ERR Client names cannot contain spaces, newlines or special characters."

#endif
