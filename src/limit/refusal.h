/*
 * The error reply for a command that exceeds a limit, or is denied.
 */
#ifndef WEIR_LIMIT_REFUSAL_H
#define WEIR_LIMIT_REFUSAL_H

#include <stddef.h>

#include "base/slice.h"
#include "limit/gate.h"

/*
 * Write "-PREFIX retry_in_ms=37 limit=free/write\r\n", milliseconds rounded up, -1 for never; or for a limit that
 * denies "-NOPERM denied by policy free\r\n". `out` has REFUSAL_ROOM bytes. Returns the length.
 */
#define REFUSAL_ROOM 192
size_t refusal_text(char *out, struct slice prefix, const struct verdict *verdict);

/*
 * "-NOPERM blocked by the operator: reason\r\n", without what follows the colon where there is none. `out` has
 * REFUSAL_BLOCK_ROOM bytes, the reason BLOCK_REASON_MAX at most and no line ends.
 */
#define REFUSAL_BLOCK_ROOM 256
size_t refusal_block(char *out, struct slice reason);

#endif
