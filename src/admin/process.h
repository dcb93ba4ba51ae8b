/*
 * What the system reports about this process at present. A value is 0 if the system does not report
 * it. Any thread.
 */
#ifndef WEIR_ADMIN_PROCESS_H
#define WEIR_ADMIN_PROCESS_H

#include <stdint.h>

double process_cpu_seconds(void); /* user and system time */
uint64_t process_resident_bytes(void);
uint64_t process_open_fds(void);
uint64_t process_max_fds(void); /* most descriptors that may be open */

#endif
