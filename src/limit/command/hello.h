/*
 * Parses AUTH and HELLO, strictly, as Redis does from 7.2 on: user and password, protocol version, client name. HELLO's
 * options are read from left to right before any of them takes effect; there may be one AUTH (Redis takes the last of
 * several).
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
    uint8_t protocol; /* 2 or 3; 0: not given */
    bool has_auth;
    bool is_short; /* AUTH password: the user is `default` */
    bool has_name;
};

/*
 * `request` is a whole multibulk request that request_scan has accepted. False: `error` (HELLO_ERROR_ROOM bytes) is
 * what Redis would answer, "ERR ..." without the '-'; it may contain bytes of the request.
 */
#define HELLO_ERROR_ROOM 256
__attribute__((warn_unused_result)) bool hello_read(struct hello *hello, struct slice request, char *error);
__attribute__((warn_unused_result)) bool hello_read_auth(struct hello *hello, struct slice request, char *error);

/* Does this HELLO say who the client is, before anything for which every version of Redis refuses it? */
bool hello_logs_in(struct slice request);

/* Is it a client name as Redis wants it, of printable characters only? */
bool hello_is_name(struct slice name);
#define HELLO_BAD_NAME "ERR Client names cannot contain spaces, newlines or special characters."

#endif
