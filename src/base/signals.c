#include "base/signals.h"

/*
 * No signal of a fault (SIGSEGV ...), so that sanitizers can report it; not SIGCHLD, which the main thread needs to the
 * end. SIGPIPE is in the list for threads that write before main has set it to be ignored.
 */
static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};

void signals_block(sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaddset(&set, numbers[i]);
    pthread_sigmask(SIG_BLOCK, &set, before);
}

void signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
