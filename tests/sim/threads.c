/*
 * Threads, each with one loop. A started thread's loop takes steps like any party. pthread_join
 * drives the world until that loop has ended. Nothing runs in parallel.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "tests/sim/loops.h"

#define WRAP(name) __wrap_##name

struct thread {
    struct sim_loop *loop;
    void *(*run)(void *arg);
    void *arg;
};

int WRAP(pthread_create)(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *arg),
                         void *arg);
int WRAP(pthread_join)(pthread_t thread, void **result);
int WRAP(pthread_setname_np)(pthread_t thread, const char *name);

int WRAP(pthread_create)(pthread_t *out, const pthread_attr_t *attributes, void *(*run)(void *arg),
                         void *arg)
{
    (void)attributes;
    struct thread *thread = mem_zalloc(1, sizeof *thread);
    *thread = (struct thread){loop_begin(), run, arg};
    *out = (pthread_t)(uintptr_t)thread;
    return 0;
}

int WRAP(pthread_join)(pthread_t number, void **result)
{
    struct thread *thread = (struct thread *)(uintptr_t)number;
    loop_drive(thread->loop);
    void *end = thread->run(thread->arg);
    if (result != NULL)
        *result = end;
    free(thread);
    return 0;
}

int WRAP(pthread_setname_np)(pthread_t thread, const char *name)
{
    (void)thread;
    (void)name;
    return 0;
}
