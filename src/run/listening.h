/*
 * The sockets that weir listens on: one of each TCP address for every worker, one of each unix socket for all of them.
 */
#ifndef WEIR_RUN_LISTENING_H
#define WEIR_RUN_LISTENING_H

#include <stdbool.h>
#include <stddef.h>

#include "front/front.h"
#include "run/config.h"

struct opening {
    int fd;
    const struct entrance *entrance;
};

struct listening;

/* Everything that the configuration names, the operators' socket included. NULL: the log says why. */
struct listening *listening_open(const struct config *config);

/* Close the sockets and remove the files of unix sockets: nobody watches them any more. */
void listening_shut(struct listening *listening);

/* The same, unless it has been done, and free. NULL may be closed. */
void listening_close(struct listening *listening);

/* How many openings each worker has, and the first of those of one worker; they live until listening_close. */
size_t listening_count(const struct listening *listening);
const struct opening *listening_openings(const struct listening *listening, unsigned worker);

#endif
