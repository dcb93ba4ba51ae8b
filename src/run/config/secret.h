/* A password in a file of its own. */
#ifndef WEIR_RUN_SECRET_H
#define WEIR_RUN_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/why.h"

#define SECRET_MAX 4096 /* bytes */

/*
 * Reads the one line of the regular file at `path`, without its line end, into *secret (heap).
 * *age_ns (may be NULL): time since the file was changed, by the system's clock; UINT64_MAX:
 * unknown, or in the future. False: `why` has the error. True: `why` is untouched, or warns that
 * other users can read the file.
 */
__attribute__((warn_unused_result)) bool secret_read(const char *path, char **secret,
                                                     uint64_t *age_ns, struct why why);

/* Wipes and frees the password. NULL is allowed. */
void secret_forget(char *secret);

#endif
