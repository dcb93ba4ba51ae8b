/*
 * The error replies for commands that exceed a limit, are denied, or come from a blocked subject.
 */
#ifndef WEIR_LIMIT_REFUSAL_H
#define WEIR_LIMIT_REFUSAL_H

#include <stddef.h>

#include "base/slice.h"
#include "limit/gate.h"

/*
 * Writes "-PREFIX retry_in_ms=37 limit=free/write\r\n". Milliseconds are rounded up; -1 means
 * never. For a limit that denies: "-NOPERM denied by policy free\r\n". `out` has REFUSAL_ROOM
 * bytes. Returns the length.
 */
#define REFUSAL_ROOM 192
size_t refusal_text(char *out, struct slice prefix, const struct verdict *verdict);

/*
 * Writes "-NOPERM blocked by the operator: reason\r\n", or without ": reason" if the reason is
 * empty. `out` has REFUSAL_BLOCK_ROOM bytes. The reason has at most BLOCK_REASON_MAX bytes and no
 * line ends. Returns the length.
 */
#define REFUSAL_BLOCK_ROOM 256
size_t refusal_block(char *out, struct slice reason);

#endif
