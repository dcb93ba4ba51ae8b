/*
 * The sockets that weir listens on: for each TCP address one for every worker, for each unix socket one for all. Of an
 * address whose sockets were inherited there may be more or fewer.
 */
#ifndef WEIR_RUN_LISTENING_H
#define WEIR_RUN_LISTENING_H

#include <stdbool.h>
#include <stddef.h>

#include "front/front.h"
#include "run/config/config.h"
#include "run/succession.h"

/* A socket on which a worker accepts, and how clients come in there (front/front.h). */
struct opening {
    int fd;
    const struct entrance *entrance;
};

struct listening;

/*
 * Open all listening sockets of the configuration, the operators' socket included, using inherited ones. NULL: the log
 * says why.
 */
struct listening *listening_open(const struct config *config, struct inherited *inherited);

/* The i-th of all sockets, to hand to a successor; fd -1 behind the last. */
struct heirloom listening_socket(const struct listening *listening, size_t i);

/*
 * This process is about to serve: the files of unix sockets that a predecessor has handed over get the rights that the
 * configuration says, and are removed here, at the end. False: the log says why not.
 */
__attribute__((warn_unused_result)) bool listening_take_over(struct listening *listening);

/* A successor has the sockets too: files of unix sockets are no longer removed here. */
void listening_hand_over(struct listening *listening);

/* Nobody new comes in but operators; who waits to be accepted does so still. No successor has the sockets. */
void listening_refuse(struct listening *listening);

/*
 * Close the sockets and remove the files of unix sockets; the operators' only if a successor has it. No worker may use
 * them any more.
 */
void listening_shut(struct listening *listening, bool has_successor);

/* The same, unless it has been done, and free. NULL is allowed. */
void listening_close(struct listening *listening);

/* The addresses: how many, and how clients come in at each. */
size_t listening_count(const struct listening *listening);
const struct entrance *listening_entrance(const struct listening *listening, size_t i);

/* The *n sockets on which one worker accepts; valid until listening_close. */
const struct opening *listening_openings(const struct listening *listening, unsigned worker, size_t *n);

#endif
