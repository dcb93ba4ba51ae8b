/*
 * What the system says about this process, now. Each is 0 where the system does not say. Any thread.
 */
#ifndef WEIR_ADMIN_PROCESS_H
#define WEIR_ADMIN_PROCESS_H

#include <stdint.h>

double process_cpu_seconds(void); /* used, user and system */
uint64_t process_resident_bytes(void);
uint64_t process_open_fds(void);
uint64_t process_max_fds(void); /* the most that may be open */

#endif
