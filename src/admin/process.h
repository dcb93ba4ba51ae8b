/*
 * What the system says about this process. Any thread.
 */
#ifndef WEIR_ADMIN_PROCESS_H
#define WEIR_ADMIN_PROCESS_H

#include <stdint.h>

struct process {
    double cpu_seconds;
    uint64_t resident_bytes;
    uint64_t open_fds;
    uint64_t max_fds;
};

struct process process_look(void);

#endif
