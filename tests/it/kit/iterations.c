/*
 * Measures the event-loop iterations of weir's workers; preloaded by LD_PRELOAD. An iteration is
 * the work between two waits for events. A file shared with a test or a benchmark holds the largest
 * values until the reader clears them: see iterations.py.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* The layout is that of iterations.py. */
struct largest {
    _Atomic uint64_t ns;    /* processor time, by the thread's own clock */
    _Atomic uint64_t locks; /* mutexes locked: one for each subject look-up */
};

static struct largest *largest;
static int (*real_lock)(pthread_mutex_t *);
static int (*real_wait)(int, struct epoll_event *, int, int);
static int (*real_pwait)(int, struct epoll_event *, int, int, const sigset_t *);

static _Thread_local bool is_worker;
static _Thread_local uint64_t began_ns, locks;

/* ISO C has no cast from a data pointer to a function pointer. */
#define FIND(real, name) (memcpy(&(real), &(void *){dlsym(RTLD_NEXT, name)}, sizeof(real)))

__attribute__((constructor)) static void begin_all(void)
{
    const char *path = getenv("ITERATIONS_FILE");
    int fd = path != NULL ? open(path, O_RDWR | O_CLOEXEC) : -1;
    FIND(real_lock, "pthread_mutex_lock");
    FIND(real_wait, "epoll_wait");
    FIND(real_pwait, "epoll_pwait");
    void *memory = fd >= 0 ? mmap(NULL, sizeof *largest, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                           : MAP_FAILED;
    largest = memory != MAP_FAILED ? memory : NULL;
    if (fd >= 0)
        close(fd);
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void raise_to(_Atomic uint64_t *most, uint64_t n)
{
    uint64_t before = atomic_load(most);
    while (n > before && !atomic_compare_exchange_weak(most, &before, n))
        ;
}

static void end(void)
{
    if (!is_worker || largest == NULL)
        return;
    raise_to(&largest->ns, now_ns() - began_ns);
    raise_to(&largest->locks, locks);
}

static void begin(void)
{
    char name[16] = "";
    if (!is_worker)
        pthread_getname_np(pthread_self(), name, sizeof name);
    is_worker = is_worker || strcmp(name, "worker") == 0;
    locks = 0;
    began_ns = is_worker ? now_ns() : 0;
}

int epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
    end();
    int told = real_wait(fd, events, n, timeout_ms);
    begin();
    return told;
}

int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout_ms, const sigset_t *mask)
{
    end();
    int told = real_pwait(fd, events, n, timeout_ms, mask);
    begin();
    return told;
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    if (real_lock == NULL)
        FIND(real_lock, "pthread_mutex_lock");
    locks++;
    return real_lock(mutex);
}
