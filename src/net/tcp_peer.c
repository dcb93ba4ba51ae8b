#include "net/tcp_peer.h"

/*
 * This header has the peer's window (tcpi_snd_wnd). The header conflicts with <netinet/tcp.h>,
 * which libuv includes.
 */
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <sys/socket.h>

#include "base/clock.h"

/*
 * idle time before the first probe (chosen); below Redis' default of 300 s, because middleboxes
 * forget idle connections sooner
 */
#define KEEPALIVE_IDLE_S 60
#define KEEPALIVE_INTERVAL_S 15 /* time between two probes (chosen) */
/* unanswered probes (chosen): an idle peer is detected after two minutes */
#define KEEPALIVE_PROBES 4
#define LOOK_NS (15 * NS_PER_S)
#define SILENCE_NS (90 * NS_PER_S) /* with LOOK_NS less than keepalive's two minutes */
#define PROBES_UNANSWERED 2

static unsigned hurry = 1; /* written before the first thread starts */

void tcp_peer_hurry(unsigned times)
{
    hurry = times > 0 ? times : 1;
}

static void tcp_peer_set(int fd, int level, int name, int value)
{
    /* errors are ignored: these options are optional */
    setsockopt(fd, level, name, &value, sizeof value);
}

static int tcp_peer_seconds(int n)
{
    int left = n / (int)hurry;
    return left > 0 ? left : 1;
}

void tcp_peer_keepalive(int fd)
{
    tcp_peer_set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    tcp_peer_set(fd, IPPROTO_TCP, TCP_KEEPIDLE, tcp_peer_seconds(KEEPALIVE_IDLE_S));
    tcp_peer_set(fd, IPPROTO_TCP, TCP_KEEPINTVL, tcp_peer_seconds(KEEPALIVE_INTERVAL_S));
    tcp_peer_set(fd, IPPROTO_TCP, TCP_KEEPCNT, KEEPALIVE_PROBES);
}

uint64_t tcp_peer_look_ns(void)
{
    return LOOK_NS / hurry;
}

bool tcp_peer_has_vanished(int fd)
{
    struct tcp_info info;
    socklen_t length = sizeof info;
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length) != 0 ||
        length < offsetof(struct tcp_info, tcpi_snd_wnd) + sizeof info.tcpi_snd_wnd)
        return false;
    if (info.tcpi_unacked == 0 && info.tcpi_notsent_bytes == 0)
        return false;
    int silence_ms = (int)(SILENCE_NS / hurry / NS_PER_MS);
    bool is_window_open = info.tcpi_snd_wnd > 0 && info.tcpi_unacked > 0;
    if (!is_window_open || info.tcpi_retransmits > 0)
        tcp_peer_set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, is_window_open ? silence_ms : 0);
    unsigned n_unanswered =
        info.tcpi_probes > info.tcpi_retransmits ? info.tcpi_probes : info.tcpi_retransmits;
    return !is_window_open && n_unanswered >= PROBES_UNANSWERED &&
           info.tcpi_last_ack_recv >= (unsigned)silence_ms;
}
