#include "net/splice_pipe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define HOW (SPLICE_F_MOVE | SPLICE_F_NONBLOCK)

void splice_pipe_init(struct splice_pipe *splice_pipe)
{
    if (pipe2(splice_pipe->ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        splice_pipe->ends[0] = splice_pipe->ends[1] = -1;
        return;
    }
    /* if the system refuses, less is spliced at a time */
    (void)fcntl(splice_pipe->ends[1], F_SETPIPE_SZ, SPLICE_PIPE_MOST);
}

void splice_pipe_fini(struct splice_pipe *splice_pipe)
{
    if (!splice_pipe_works(splice_pipe))
        return;
    close(splice_pipe->ends[0]);
    close(splice_pipe->ends[1]);
    splice_pipe->ends[0] = splice_pipe->ends[1] = -1;
}

struct spliced splice_pipe_pass(const struct splice_pipe *splice_pipe, int from, int to, size_t most)
{
    struct spliced done = {.taken = splice(from, NULL, splice_pipe->ends[1], NULL,
                                           most < SPLICE_PIPE_MOST ? most : SPLICE_PIPE_MOST, HOW)};
    if (done.taken <= 0)
        return done;
    ssize_t sent = splice(splice_pipe->ends[0], NULL, to, NULL, (size_t)done.taken, HOW);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        done.error = errno;
    done.left = (size_t)(done.taken - (sent > 0 ? sent : 0));
    return done;
}

bool splice_pipe_fetch(struct splice_pipe *splice_pipe, char *at, size_t n)
{
    while (n > 0) {
        ssize_t got = read(splice_pipe->ends[0], at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            splice_pipe_fini(splice_pipe);
            return false;
        }
        at += got;
        n -= (size_t)got;
    }
    return true;
}
