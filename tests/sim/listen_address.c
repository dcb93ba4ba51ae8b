#include "tests/sim/listen_address.h"

#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tests/sim/client.h"
#include "tests/sim/run.h"

#define FIRST_PORT 6380
#define SECOND_PORT 6381
#define PROXY_PORT 6390
#define UNIX_PATH "/sim/weir.sock"
#define CLIENTS_NET 0x0a000000U /* 10.0.0.0 */
#define BALANCER 0x0a000101U    /* 10.0.1.1 */
#define NO_BALANCER 0x0a000201U /* 10.0.2.1: a source that weir does not trust for PROXY headers */
#define BLOCK_MARK "\r\n\r\n\0\r\nQUIT\n"

void listen_address_config(unsigned entrances, char *out, size_t room)
{
    bool has_proxy = (entrances & LISTEN_ADDRESS_PROXY) != 0;
    snprintf(out, room, "listen = 127.0.0.1:6380%s%s%s\n%s",
             (entrances & LISTEN_ADDRESS_SECOND) != 0 ? ", 127.0.0.1:6381" : "",
             (entrances & LISTEN_ADDRESS_UNIX) != 0 ? ", unix:" UNIX_PATH : "",
             has_proxy ? ", 127.0.0.1:6390 proxy" : "",
             has_proxy ? "proxy-protocol-from = 10.0.1.0/24\n" : "");
}

/* ---- the PROXY protocol ---- */

enum header {
    TEXT,
    BLOCK,
    BLOCK_WITH_MORE,
    TEXT_UNKNOWN,
    BLOCK_LOCAL,
    BROKEN,
    MISSING,
    HALF,
    FROM_NOBODY
};

static enum header header_of(const struct client *client)
{
    static const enum header headers[] = {TEXT,       BLOCK, TEXT, BLOCK,        BLOCK_WITH_MORE,
                                          TEXT,       BLOCK, TEXT, TEXT_UNKNOWN, BLOCK_LOCAL,
                                          BROKEN,     BLOCK, TEXT, HALF,         MISSING,
                                          FROM_NOBODY};
    return headers[(client->number * 7 + client->life * 5) % (sizeof headers / sizeof headers[0])];
}

/* PROXY version 2, with `more` bytes behind the addresses. */
static void say_block(struct client *client, uint8_t command, uint32_t address, uint16_t more)
{
    uint8_t block[16 + 12 + 256] = BLOCK_MARK;
    uint32_t from = htonl(address), to = htonl(0x7f000001U);
    uint16_t port = htons(4711);
    uint16_t len = (uint16_t)(12 + more);
    block[12] = command;
    block[13] = 0x11; /* TCP over IPv4 */
    block[14] = (uint8_t)(len >> 8);
    block[15] = (uint8_t)len;
    memcpy(block + 16, &from, 4);
    memcpy(block + 20, &to, 4);
    memcpy(block + 24, &port, 2);
    memcpy(block + 26, &port, 2);
    say_raw(client, (const char *)block, 16U + len);
}

static void say_line(struct client *client, uint32_t address)
{
    char line[108];
    int n = snprintf(line, sizeof line, "PROXY TCP4 %u.%u.%u.%u 127.0.0.1 4711 6390\r\n",
                     address >> 24, address >> 16 & 255, address >> 8 & 255, address & 255);
    say_raw(client, line, (size_t)n);
}

static void say_header(struct client *client, enum header header)
{
    static const char *const others[] = {
        [TEXT_UNKNOWN] = "PROXY UNKNOWN\r\n",
        [BROKEN] = "PROXY TCP4 10.0.0.999 127.0.0.1 1 2\r\n",
        [MISSING] = "*1\r\n$4\r\nPING\r\n",
        [HALF] = "PROXY TCP4 10.0",
    };
    uint32_t address = CLIENTS_NET + client->address + 1;
    if (header == TEXT || header == FROM_NOBODY)
        say_line(client, address);
    else if (header == BLOCK || header == BLOCK_WITH_MORE)
        say_block(client, 0x21, address,
                  header == BLOCK ? 0 : (uint16_t)(client->number * 10 % 256));
    else if (header == BLOCK_LOCAL)
        say_block(client, 0x20, address, 0);
    else
        say_raw(client, others[header], strlen(others[header]));
    if (header == TEXT_UNKNOWN || header == BLOCK_LOCAL)
        client->address = ADDRESS_BALANCER;
    client->is_lost = header >= BROKEN;
    client->intent.is_leaving = header == HALF && client->life % 2 == 0;
}

/* ---- listeners ---- */

static unsigned way_of(const struct client *client)
{
    unsigned ways[4] = {0}, n = 1;
    for (unsigned bit = 1; bit <= LISTEN_ADDRESS_ALL; bit *= 2)
        if ((run.plan.entrances & bit) != 0)
            ways[n++] = bit;
    return ways[(client->number / ADDRESSES + client->number) % n];
}

struct conn *listen_address_dial(struct client *client)
{
    unsigned way = way_of(client);
    struct sockaddr_in from = {.sin_family = AF_INET,
                               .sin_port = htons((uint16_t)(20000 + client->number))};
    const struct sockaddr *peer = (const struct sockaddr *)&from;
    uint16_t port = way == LISTEN_ADDRESS_PROXY    ? PROXY_PORT
                    : way == LISTEN_ADDRESS_SECOND ? SECOND_PORT
                                                   : FIRST_PORT;
    client->address = way == LISTEN_ADDRESS_UNIX ? ADDRESS_UNIX : client->number % ADDRESSES;
    uint32_t address = CLIENTS_NET + client->address + 1;
    if (way == LISTEN_ADDRESS_PROXY) {
        enum header header = header_of(client);
        say_header(client, header);
        address = header == FROM_NOBODY ? NO_BALANCER : BALANCER;
    }
    from.sin_addr.s_addr = htonl(address);
    struct conn *conn = way == LISTEN_ADDRESS_UNIX
                            ? conn_dial(0, UNIX_PATH, NULL, 0, &client->party, client)
                            : conn_dial(port, NULL, peer, sizeof from, &client->party, client);
    if (conn != NULL)
        conn_call(conn, SIDE_CLIENT, client->number, client->life);
    return conn;
}
