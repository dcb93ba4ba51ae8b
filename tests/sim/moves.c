#include "tests/sim/moves.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "tests/sim/kernel.h"
#include "tests/sim/run.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"

#define HOSTS 3 /* 127.0.0.1 to 127.0.0.3 */

enum { STREAM_MOVES = 12 };

static struct moves {
    unsigned host;       /* the address that the name resolves to */
    bool is_dead[HOSTS]; /* the address does not answer */
    bool is_listed_last; /* the address in use is listed behind another one */
    uint64_t lost_ns;    /* until then the name does not resolve, ... */
    uint64_t slow_ns;    /* ... or a look-up takes until then */
    struct random chance;
} moves;

void moves_start(void)
{
    moves = (struct moves){.host = 0};
    random_init(&moves.chance, run.plan.seed, STREAM_MOVES);
}

static struct endpoint endpoint_of(unsigned host)
{
    struct endpoint endpoint = {.length = sizeof(struct sockaddr_in)};
    struct sockaddr_in *in = (void *)&endpoint.address;
    in->sin_family = AF_INET;
    in->sin_port = htons(SERVER_PORT);
    in->sin_addr.s_addr = htonl(INADDR_LOOPBACK + host);
    return endpoint;
}

/* Returns the index of Redis' address; HOSTS: no address of Redis. */
static unsigned host_of(const struct sockaddr_storage *to)
{
    const struct sockaddr_in *in = (const void *)to;
    uint32_t host = to->ss_family == AF_INET ? ntohl(in->sin_addr.s_addr) - INADDR_LOOPBACK : HOSTS;
    return host < HOSTS ? host : HOSTS;
}

static bool is_there(const struct conn *conn, uint64_t host)
{
    return host_of(&conn->peer) == host;
}

void moves_away(uint64_t pick, bool and_dies)
{
    unsigned before = moves.host;
    if (!run.plan.has_name)
        return;
    moves.host = (before + 1 + (unsigned)(pick % (HOSTS - 1))) % HOSTS;
    moves.is_listed_last = pick / HOSTS % 2 == 0;
    moves.is_dead[moves.host] = false;
    if (!and_dies)
        return;
    moves.is_dead[before] = true;
    server_leave_all(is_there, before, pick / 8 % 2 == 0);
}

void moves_lose_name(uint64_t ns, uint64_t pick)
{
    *(pick % 2 == 0 ? &moves.lost_ns : &moves.slow_ns) = world.now_ns + ns;
}

uint64_t moves_look_ns(void)
{
    uint64_t least_ns = moves.slow_ns > world.now_ns ? moves.slow_ns - world.now_ns : 0;
    return least_ns + random_below(&moves.chance, 5000000);
}

/* A dead address may be listed before the address that answers. */
void moves_found(struct resolved *out)
{
    *out = (struct resolved){.n = 0};
    if (world.now_ns < moves.lost_ns) {
        out->why = "Temporary failure in name resolution";
        return;
    }
    unsigned other = (moves.host + 1) % HOSTS;
    if (moves.is_dead[other] && moves.is_listed_last)
        out->endpoints[out->n++] = endpoint_of(other);
    out->endpoints[out->n++] = endpoint_of(moves.host);
}

bool moves_answers(const struct sockaddr_storage *to)
{
    unsigned host = host_of(to);
    return host < HOSTS && !moves.is_dead[host];
}
