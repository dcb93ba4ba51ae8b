#include "run/descriptors.h"

#include <sys/resource.h>

#include "base/log.h"

#define PROCESS_FILES 32 /* for the main thread's loop and connections, the log, files being read */
#define WORKER_FILES                                                                                                   \
    24 /* for each worker: its loop; shared lanes of a few users, doors, spares, and script connections */
#define PRIVATE_SHARE 8 /* with shared lanes: one in so many clients has a private lane at a time */

static rlim_t need(const struct descriptors *wanted, rlim_t clients)
{
    rlim_t lanes = wanted->lanes_private ? clients : clients / PRIVATE_SHARE;
    return clients + lanes + PROCESS_FILES + (rlim_t)wanted->workers * (WORKER_FILES + wanted->listens) +
           wanted->others;
}

static rlim_t fit(const struct descriptors *wanted, rlim_t allowed)
{
    rlim_t fixed = need(wanted, 0);
    rlim_t room = allowed > fixed ? allowed - fixed : 0;
    rlim_t fits = wanted->lanes_private ? room / 2 : room * PRIVATE_SHARE / (PRIVATE_SHARE + 1);
    return fits > 0 ? fits : 1;
}

unsigned descriptors_fit(const struct descriptors *wanted)
{
    rlim_t most = need(wanted, wanted->max_clients);
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most)
        return wanted->max_clients;
    limit.rlim_cur = limit.rlim_max < most ? limit.rlim_max : most;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most)
        return wanted->max_clients;
    rlim_t fits = fit(wanted, limit.rlim_cur);
    log_warn("max-clients is lowered from %u to %lu: the system allows this process %lu open files (ulimit -n)",
             wanted->max_clients, (unsigned long)fits, (unsigned long)limit.rlim_cur);
    return (unsigned)fits;
}

uint32_t descriptors_allowed(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > INT32_MAX)
        return INT32_MAX;
    return (uint32_t)limit.rlim_cur;
}
