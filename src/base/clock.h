/*
 * weir's clock: monotonic nanoseconds. Functions of limit/ and resp/ never read the clock, but take
 * the time as an argument.
 */
#ifndef WEIR_BASE_CLOCK_H
#define WEIR_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

#define NS_PER_US UINT64_C(1000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

/* Returns milliseconds, rounded up, so that a wait of the result is never too short. */
static inline uint64_t ns_to_ms_up(uint64_t ns)
{
    return ns / NS_PER_MS + (ns % NS_PER_MS != 0);
}

static inline uint64_t clock_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/*
 * Returns the CPU time of the calling thread. Costs a system call, unlike the other functions of
 * this file.
 */
static inline uint64_t clock_thread_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* Returns milliseconds since 1970, for display: this clock may jump. */
static inline uint64_t clock_unix_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / NS_PER_MS;
}

#endif
