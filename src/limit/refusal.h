/*
 * What a client reads that is beyond a limit, or denied.
 */
#ifndef WEIR_LIMIT_REFUSAL_H
#define WEIR_LIMIT_REFUSAL_H

#include <stddef.h>

#include "base/slice.h"
#include "limit/gate.h"

/*
 * "-PREFIX retry_in_ms=37 limit=free/write\r\n" into out, which has room for REFUSAL_ROOM bytes; milliseconds rounded
 * up, -1 for never; of a limit that denies "-NOPERM denied by policy free\r\n". Returns its length.
 */
#define REFUSAL_ROOM 192
size_t refusal_text(char *out, struct slice prefix, const struct verdict *verdict);

#endif
