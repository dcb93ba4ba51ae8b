/*
 * A password kept in a file of its own.
 */
#ifndef WEIR_RUN_SECRET_H
#define WEIR_RUN_SECRET_H

#include <stdbool.h>
#include <stdint.h>

#include "base/why.h"

#define SECRET_MAX 4096 /* bytes */

/*
 * Read the one line of the regular file at `path`, without its line end, into *secret (heap). *age_ns (NULL: not asked
 * for): how long ago the file was changed, by the system's clock; UINT64_MAX: not known, or in the future. False: `why`
 * says what is wrong. True: `why` is untouched, or warns that other users can read the file too.
 */
__attribute__((warn_unused_result)) bool secret_read(const char *path, char **secret, uint64_t *age_ns, struct why why);

/* Wipe and free it. NULL is allowed. */
void secret_forget(char *secret);

#endif
