#include "run/descriptors.h"

#include <sys/resource.h>

#include "base/log.h"

#define RESERVED_FILES 32 /* descriptors for listeners, lanes, loops and the log */

unsigned descriptors_fit(unsigned max_clients, bool lanes_private, unsigned others)
{
    rlim_t each = lanes_private ? 2 : 1;
    rlim_t reserved = RESERVED_FILES + others;
    rlim_t need = max_clients * each + reserved;
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return max_clients;
    limit.rlim_cur = limit.rlim_max < need ? limit.rlim_max : need;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= need)
        return max_clients;
    rlim_t fits = limit.rlim_cur > reserved + each ? (limit.rlim_cur - reserved) / each : 1;
    log_warn("max-clients is lowered from %u to %lu: the system allows this process %lu open files (ulimit -n)",
             max_clients, (unsigned long)fits, (unsigned long)limit.rlim_cur);
    return (unsigned)fits;
}
