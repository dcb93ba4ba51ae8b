/*
 * The one place where text becomes a JSON string: for the log and for what is served over HTTP.
 */
#ifndef WEIR_BASE_JSON_H
#define WEIR_BASE_JSON_H

#include "base/slice.h"

#define JSON_QUOTED_MAX(len) (6 * (len) + 2) /* a string of `len` bytes has at most so many, quoted */

/*
 * Write `value` as a JSON string with its quotation marks into out, at most `room` >= 2 bytes; what does not fit is
 * left out, by whole characters. The result is always valid: bytes that are no UTF-8 become U+FFFD; control characters
 * are escaped, and so are <, > and &, for use inside HTML. Returns its length.
 */
size_t json_quote(char *out, size_t room, struct slice value);

#endif
