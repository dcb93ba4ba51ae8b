/*
 * Signals that are sent to weir are handled on the main thread: every other thread starts with them blocked.
 */
#ifndef WEIR_BASE_SIGNALS_H
#define WEIR_BASE_SIGNALS_H

#include <signal.h>

/* Block them in this thread and those that it starts later. The old mask goes into `before`, if that is not NULL. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

#endif
