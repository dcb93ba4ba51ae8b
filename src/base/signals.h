/*
 * The signals that others send to weir are the main thread's: every other thread is started with them blocked, so the
 * main thread alone says when none is taken any more.
 */
#ifndef WEIR_BASE_SIGNALS_H
#define WEIR_BASE_SIGNALS_H

#include <signal.h>

/* For this thread and those it starts from now on; what was blocked before goes into `before` unless that is NULL. */
void signals_block(sigset_t *before);
void signals_restore(const sigset_t *before);

#endif
