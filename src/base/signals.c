#include "base/signals.h"

/*
 * None that tells of a fault, so that a sanitizer can say where; and not SIGCHLD, which the main thread needs to the end.
 * SIGPIPE is for threads that write before it is ignored.
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
