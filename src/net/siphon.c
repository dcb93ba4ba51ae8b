#include "net/siphon.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#define HOW (SPLICE_F_MOVE | SPLICE_F_NONBLOCK)

void siphon_init(struct siphon *siphon)
{
    if (pipe2(siphon->ends, O_NONBLOCK | O_CLOEXEC) != 0) {
        siphon->ends[0] = siphon->ends[1] = -1;
        return;
    }
    /* if the system refuses, less is spliced at a time */
    (void)fcntl(siphon->ends[1], F_SETPIPE_SZ, SIPHON_MOST);
}

void siphon_fini(struct siphon *siphon)
{
    if (!siphon_works(siphon))
        return;
    close(siphon->ends[0]);
    close(siphon->ends[1]);
    siphon->ends[0] = siphon->ends[1] = -1;
}

struct siphoned siphon_pass(const struct siphon *siphon, int from, int to, size_t most)
{
    struct siphoned done = {
        .taken = splice(from, NULL, siphon->ends[1], NULL, most < SIPHON_MOST ? most : SIPHON_MOST, HOW)};
    if (done.taken <= 0)
        return done;
    ssize_t sent = splice(siphon->ends[0], NULL, to, NULL, (size_t)done.taken, HOW);
    if (sent < 0 && errno != EAGAIN && errno != EINTR)
        done.error = errno;
    done.left = (size_t)(done.taken - (sent > 0 ? sent : 0));
    return done;
}

bool siphon_fetch(struct siphon *siphon, char *at, size_t n)
{
    while (n > 0) {
        ssize_t got = read(siphon->ends[0], at, n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0) {
            siphon_fini(siphon);
            return false;
        }
        at += got;
        n -= (size_t)got;
    }
    return true;
}
