/* Addresses as bytes in network order. Bytes beyond the family's are 0, so that equal addresses are equal memory. */
#include "limit/policy/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>

static struct ip ip4(const void *bytes)
{
    struct ip ip = {.family = 4};
    memcpy(ip.bytes, bytes, 4);
    return ip;
}

static struct ip ip6(const struct in6_addr *address)
{
    if (IN6_IS_ADDR_V4MAPPED(address))
        return ip4(&address->s6_addr[12]);
    struct ip ip = {.family = 6};
    memcpy(ip.bytes, address->s6_addr, 16);
    return ip;
}

struct ip ip_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return ip4(&in.sin_addr);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        return ip6(&in6.sin6_addr);
    }
    return (struct ip){0};
}

uint16_t ip_port_of(const struct sockaddr *address)
{
    if (address->sa_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, address, sizeof in);
        return ntohs(in.sin_port);
    }
    if (address->sa_family == AF_INET6) {
        struct sockaddr_in6 in6;
        memcpy(&in6, address, sizeof in6);
        return ntohs(in6.sin6_port);
    }
    return 0;
}

bool ip_parse(struct slice text, struct ip *ip)
{
    char copy[IP_TEXT_MAX];
    struct in_addr in;
    struct in6_addr in6;
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.at, '\0', text.len) != NULL)
        return false;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    if (inet_pton(AF_INET, copy, &in) == 1)
        *ip = ip4(&in);
    else if (inet_pton(AF_INET6, copy, &in6) == 1)
        *ip = ip6(&in6);
    else
        return false;
    return true;
}

static char *print_byte(char *out, unsigned byte)
{
    if (byte >= 100)
        *out++ = (char)('0' + byte / 100);
    if (byte >= 10)
        *out++ = (char)('0' + byte / 10 % 10);
    *out++ = (char)('0' + byte % 10);
    return out;
}

/* Printed several times for each connection: inet_ntop takes 3,000 instructions for an IPv4 address. */
size_t ip_print(const struct ip *ip, char *out)
{
    if (ip->family != 4) {
        inet_ntop(AF_INET6, ip->bytes, out, IP_TEXT_MAX);
        return strlen(out);
    }
    char *at = out;
    for (unsigned i = 0; i < 4; i++) {
        at = print_byte(at, ip->bytes[i]);
        *at++ = '.';
    }
    *--at = '\0';
    return (size_t)(at - out);
}

unsigned ip_bits(const struct ip *ip)
{
    return ip->family == 4 ? 32 : ip->family == 6 ? 128 : 0;
}

struct ip ip_network(const struct ip *ip, unsigned prefix)
{
    struct ip network = *ip;
    for (unsigned i = 0; i < sizeof network.bytes; i++) {
        unsigned keep = prefix > 8 * i ? prefix - 8 * i : 0;
        if (keep < 8)
            network.bytes[i] &= (uint8_t)(0xff00U >> keep);
    }
    return network;
}

bool ip_eq(const struct ip *a, const struct ip *b)
{
    return a->family == b->family && memcmp(a->bytes, b->bytes, sizeof a->bytes) == 0;
}
