/*
 * Signals that are sent to weir are handled on the main thread: every other thread starts with them blocked.
 */
#ifndef WEIR_BASE_SIGNALS_H
#define WEIR_BASE_SIGNALS_H

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

#endif
