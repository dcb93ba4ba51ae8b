/*
 * The process and the system: signals, and exit statuses.
 *
 * The main thread handles the signals that are sent to weir. All other threads start with these
 * signals blocked.
 */
#ifndef WEIR_BASE_PROCESS_H
#define WEIR_BASE_PROCESS_H

#include <signal.h>

/*
 * Blocks weir's signals in this thread, and in threads that this thread starts later. The old mask
 * goes into `before`, if `before` is not NULL.
 */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

/*
 * Blocks SIGHUP, SIGUSR1 and SIGUSR2 in this thread: the system keeps one signal of each kind until
 * signals_unblock. Blocking is necessary, because a signal without a handler would end the process,
 * and an ignored signal would be lost.
 */
void signals_keep(void);

/* Unblocks in this thread the signals of signals_block and signals_keep. */
void signals_unblock(void);

/*
 * Exit statuses, as in docs/operations.md. A service manager starts weir again after each status
 * but EXIT_CONFIG, because a mistake in the configuration persists.
 */
/* a mistake in the command line, in the configuration, or in systemd's sockets */
#define EXIT_CONFIG 1
/*
 * any other failure: an address in use, a log that cannot be opened, no memory, descriptors or
 * threads
 */
#define EXIT_SYSTEM 2
#define EXIT_EXPLAINED 3 /* --explain: the command does not pass */

#endif
