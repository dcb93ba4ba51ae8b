#include "base/process.h"

/*
 * The list has no signal of a fault (SIGSEGV ...), so that sanitizers can report the fault. The
 * list has no SIGCHLD, which the main thread needs until weir stops. SIGPIPE is in the list for
 * threads that write before the main thread ignores SIGPIPE.
 */
static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2, SIGPIPE};
static const int kept[] = {SIGHUP, SIGUSR1, SIGUSR2};

static void change_mask(int how, const int *list, size_t n, sigset_t *before)
{
    sigset_t set;
    sigemptyset(&set);
    for (size_t i = 0; i < n; i++)
        sigaddset(&set, list[i]);
    pthread_sigmask(how, &set, before);
}

void signals_block(sigset_t *before)
{
    change_mask(SIG_BLOCK, numbers, sizeof numbers / sizeof *numbers, before);
}

void signals_keep(void)
{
    change_mask(SIG_BLOCK, kept, sizeof kept / sizeof *kept, NULL);
}

void signals_unblock(void)
{
    change_mask(SIG_UNBLOCK, numbers, sizeof numbers / sizeof *numbers, NULL);
}

void signals_restore(const sigset_t *before)
{
    pthread_sigmask(SIG_SETMASK, before, NULL);
}
