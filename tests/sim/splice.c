/* Pipes, and splice between sockets: bytes move as if read and written, with the faults of both. */
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/mem.h"
#include "tests/sim/heap.h"
#include "tests/sim/outside.h"
#include "tests/sim/sockets.h"

#define UNABLE 50 /* in a million: sockets without splice */

int WRAP(pipe2)(int ends[2], int flags);
ssize_t WRAP(splice)(int from, off_t *from_at, int to, off_t *to_at, size_t most, unsigned flags);
ssize_t WRAP(read)(int fd, void *out, size_t room);
ssize_t WRAP(write)(int fd, const void *data, size_t n);

int WRAP(pipe2)(int ends[2], int flags)
{
    OUTSIDE;
    (void)flags;
    if (random_hits(&kernel.chance, kernel.odds.socket_short))
        return sim_fail(EMFILE);
    for (int i = 0; i < 2; i++)
        ends[i] = sock_open(SOCK_PIPE, 0);
    struct sock *reader = sock_of(ends[0]);
    reader->held = mem_zalloc(PIPE_HELD_MAX, 1);
    reader->reader = sock_of(ends[1])->reader = reader;
    return 0;
}

static void drop(struct sock *reader, size_t n)
{
    memmove(reader->held, reader->held + n, reader->n_held - n);
    reader->n_held -= n;
}

ssize_t sock_read_pipe(struct sock *sock, void *out, size_t room)
{
    size_t n = sock->n_held < room ? sock->n_held : room;
    if (n == 0)
        return sim_fail(EAGAIN);
    memcpy(out, sock->held, n);
    drop(sock, n);
    return (ssize_t)n;
}

static ssize_t fill(struct sock *reader, int from, size_t most)
{
    size_t room = PIPE_HELD_MAX - reader->n_held;
    if (random_hits(&kernel.chance, UNABLE))
        return sim_fail(EINVAL);
    if (room == 0)
        return sim_fail(EAGAIN);
    ssize_t n = WRAP(read)(from, reader->held + reader->n_held, most < room ? most : room);
    reader->n_held += n > 0 ? (size_t)n : 0;
    return n;
}

static ssize_t empty(struct sock *reader, int to, size_t most)
{
    ssize_t n = WRAP(write)(to, reader->held, most < reader->n_held ? most : reader->n_held);
    if (n > 0)
        drop(reader, (size_t)n);
    return n;
}

ssize_t WRAP(splice)(int from, off_t *from_at, int to, off_t *to_at, size_t most, unsigned flags)
{
    OUTSIDE;
    (void)from_at;
    (void)to_at;
    (void)flags;
    const struct sock *source = sock_of(from), *sink = sock_of(to);
    if (source == NULL || sink == NULL)
        return sim_fail(EBADF);
    return source->kind == SOCK_PIPE ? empty(source->reader, to, most)
                                     : fill(sink->reader, from, most);
}
