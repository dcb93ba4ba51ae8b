/*
 * Parses AUTH and HELLO as strictly as Redis 7.2 and later: user and password, protocol version,
 * client name. Options of HELLO are read from left to right, before any takes effect. Only one AUTH
 * is allowed; Redis takes the last of several.
 *
 * Pure: nothing is allocated; all slices point into the request.
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
    uint8_t protocol; /* 2 or 3; 0: not given */
    bool has_auth;
    bool is_short; /* AUTH password: the user is `default` */
    bool has_name;
};

/*
 * `request` is a whole multibulk request that request_scan has accepted. False: `error`
 * (HELLO_ERROR_ROOM bytes) is the error that Redis would return, "ERR ..." without the '-'. The
 * error may contain bytes of the request.
 */
#define HELLO_ERROR_ROOM 256
__attribute__((warn_unused_result)) bool hello_read(struct hello *hello, struct slice request, char *error);
__attribute__((warn_unused_result)) bool hello_read_auth(struct hello *hello, struct slice request, char *error);

/* True if this HELLO has an AUTH before any part that every version of Redis refuses. */
bool hello_logs_in(struct slice request);

/* True if the name has only printable characters and no spaces, as Redis requires. */
bool hello_is_name(struct slice name);
#define HELLO_BAD_NAME "ERR Client names cannot contain spaces, newlines or special characters."

#endif
