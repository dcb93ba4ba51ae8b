/*
 * A password kept in a file of its own.
 */
#ifndef WEIR_RUN_SECRET_H
#define WEIR_RUN_SECRET_H

#include <stddef.h>
#include <stdint.h>

#define SECRET_MAX 4096 /* bytes */

enum secret_result {
    SECRET_READ,
    SECRET_READ_BY_OTHERS, /* read, but other users can read the file too, as `why` says */
    SECRET_BAD,            /* `why` says what is wrong */
};

/* Read the one line of the regular file at `path`, without its line end, into *secret (heap). */
__attribute__((warn_unused_result)) enum secret_result secret_read(const char *path, char **secret, char *why,
                                                                   size_t why_size);

/*
 * The same; *age_ns: how long ago the file was changed, by the system's clock. UINT64_MAX: that is not known, or
 * would be in the future.
 */
__attribute__((warn_unused_result)) enum secret_result secret_look(const char *path, char **secret, uint64_t *age_ns,
                                                                   char *why, size_t why_size);

/* Wipe and free it. NULL is allowed. */
void secret_forget(char *secret);

#endif
