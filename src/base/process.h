/*
 * What the process has with the system around it: signals, and exit statuses.
 *
 * Signals that are sent to weir are handled on the main thread: every other thread starts with them blocked.
 */
#ifndef WEIR_BASE_PROCESS_H
#define WEIR_BASE_PROCESS_H

#include <signal.h>

/* Block them in this thread and those that it starts later. The old mask goes into `before`, if that is not NULL. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

/*
 * Block SIGHUP, SIGUSR1 and SIGUSR2 in this thread: the system keeps one of each until signals_unblock. Without a
 * handler they would end the process, and a signal that is ignored is lost.
 */
void signals_keep(void);

/* Unblock in this thread what signals_block and signals_keep have blocked. */
void signals_unblock(void);

/*
 * Exit statuses, as docs/operations.md has them. A service manager starts weir again after each of
 * them but EXIT_CONFIG: a mistake of the configuration does not mend itself.
 */
#define EXIT_CONFIG 1 /* a mistake of the command line, of the configuration, or of the sockets that systemd holds */
#define EXIT_SYSTEM 2 /* all else: an address in use, a log that cannot be opened, no memory, descriptors or threads */
#define EXIT_EXPLAINED 3 /* --explain: the command does not pass */

#endif
