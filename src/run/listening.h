/*
 * The sockets that weir listens on. A TCP address has one socket for each worker, a unix address
 * one for all workers. An address with inherited sockets may have more or fewer sockets.
 */
#ifndef WEIR_RUN_LISTENING_H
#define WEIR_RUN_LISTENING_H

#include <stdbool.h>
#include <stddef.h>

#include "front/front.h"
#include "run/config/config.h"
#include "run/succession.h"

/* A socket on which a worker accepts, and the listen address of the socket (front/front.h). */
struct opening {
    int fd;
    const struct listen_address *listen_address;
};

struct listening;

/*
 * Opens all listening sockets of the configuration and the operators' socket. An address with
 * inherited sockets uses these sockets. NULL: an error, which is logged.
 */
struct listening *listening_open(const struct config *config, struct inherited *inherited);

/* Returns the i-th of all sockets, to be passed to a successor; fd -1 after the last. */
struct heirloom listening_socket(const struct listening *listening, size_t i);

/*
 * Takes over the files of unix sockets from a predecessor, when this process is about to serve.
 * Sets the configured rights of the files. From now on this process removes the files when it
 * closes the sockets. False: an error, which is logged.
 */
__attribute__((warn_unused_result)) bool listening_take_over(struct listening *listening);

/*
 * Leaves the files of unix sockets to a successor, which has the sockets too: this process no
 * longer removes them.
 */
void listening_hand_over(struct listening *listening);

/*
 * Refuses new connections, except from operators. TCP sockets that systemd made also stay open, for
 * the next start of weir. Connections that wait to be accepted stay. To be called only if no
 * successor has the sockets.
 */
void listening_refuse(struct listening *listening);

/*
 * Closes the sockets and removes the files of unix sockets; the operators' socket is closed only if
 * a successor has that socket. No worker may use the sockets any more.
 */
void listening_shut(struct listening *listening, bool has_successor);

/* Closes the sockets that are still open, and frees. NULL is allowed. */
void listening_close(struct listening *listening);

/* Returns the number of addresses. */
size_t listening_count(const struct listening *listening);

/* Returns the listen address at index `i`. */
const struct listen_address *listening_listen_address(const struct listening *listening, size_t i);

/* Returns the sockets on which one worker accepts, *n of them. Valid until listening_close. */
const struct opening *listening_openings(const struct listening *listening, unsigned worker,
                                         size_t *n);

#endif
