/*
 * The sockets that weir listens on: of each TCP address one for every worker, of each unix socket one for all of them. Of
 * those that were inherited there may be more or fewer.
 */
#ifndef WEIR_RUN_LISTENING_H
#define WEIR_RUN_LISTENING_H

#include <stdbool.h>
#include <stddef.h>

#include "front/front.h"
#include "run/config.h"
#include "run/inherit.h"
#include "run/upgrade.h"

struct opening {
    int fd;
    const struct entrance *entrance;
};

struct listening;

/*
 * Everything that the configuration names, the operators' socket included; what has been inherited for it is used. NULL:
 * the log says why.
 */
struct listening *listening_open(const struct config *config, struct inherited *inherited);

/* The i-th of all its sockets, fd -1 from their number on; for a successor. */
struct heirloom listening_socket(const struct listening *listening, size_t i);

/* A successor has the sockets too: the files of unix sockets are its. */
void listening_hand_over(struct listening *listening);

/* Close the sockets and remove the files of unix sockets: nobody watches them any more. */
void listening_shut(struct listening *listening);

/* The same, unless it has been done, and free. NULL may be closed. */
void listening_close(struct listening *listening);

/* How many addresses there are, and how clients come in at one of them. */
size_t listening_count(const struct listening *listening);
const struct entrance *listening_entrance(const struct listening *listening, size_t i);

/* Where one worker accepts, *n openings; they live until listening_close. */
const struct opening *listening_openings(const struct listening *listening, unsigned worker, size_t *n);

#endif
