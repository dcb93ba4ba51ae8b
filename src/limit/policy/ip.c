/*
 * Addresses are bytes in network order. Bytes beyond the family's are 0: equal addresses are equal
 * memory.
 */
#include "limit/policy/ip.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/num.h"
#include "base/slice.h"
#include "base/why.h"

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

/*
 * Addresses are printed several times for each connection, and inet_ntop takes 3,000 instructions
 * for an IPv4 address.
 */
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

/* ---- networks ---- */

enum network_fault network_parse(struct network *network, struct slice text)
{
    struct slice address, prefix = text; /* .at is NULL if there is no '/' */
    split_next(&prefix, '/', &address);
    if (!ip_parse(address, &network->ip))
        return NETWORK_NO_ADDRESS;
    int64_t bits = (int64_t)ip_bits(&network->ip);
    if (prefix.at != NULL &&
        (!num_parse(prefix, &bits) || bits < 0 || bits > (int64_t)ip_bits(&network->ip)))
        return NETWORK_BAD_PREFIX;
    network->prefix = (uint8_t)bits;
    struct ip given = network->ip;
    network->ip = ip_network(&given, network->prefix);
    return ip_eq(&network->ip, &given) ? NETWORK_GOOD : NETWORK_HOST_BITS;
}

bool network_holds(const struct network *network, const struct ip *ip)
{
    struct ip masked = ip_network(ip, network->prefix);
    return ip_eq(&masked, &network->ip);
}

static bool ip_why_not(const struct network *network, enum network_fault fault, struct slice text,
                       char *why, size_t why_size)
{
    char printed[IP_TEXT_MAX];
    if (fault == NETWORK_BAD_PREFIX)
        return why_set(why, why_size, "\"%.*s\": the prefix length must be 0 to %u",
                       WHY_SLICE(text), ip_bits(&network->ip));
    if (fault == NETWORK_NO_ADDRESS)
        return why_set(
            why, why_size,
            "\"%.*s\" is not an address: write 192.0.2.7, 10.1.0.0/16, 2001:db8::/32 or unix",
            WHY_SLICE(text));
    ip_print(&network->ip, printed);
    return why_set(why, why_size,
                   "\"%.*s\" has address bits beyond its prefix length: the network is %s/%u",
                   WHY_SLICE(text), printed, network->prefix);
}

bool networks_add(struct networks *networks, struct slice text, char *why, size_t why_size)
{
    struct network network;
    if (slice_eq_nocase(text, SLICE("unix"))) {
        networks->has_unix = true;
        return true;
    }
    if (networks->count == NETWORKS_MAX)
        return why_set(why, why_size, "at most %d addresses and networks", NETWORKS_MAX);
    enum network_fault fault = network_parse(&network, text);
    if (fault != NETWORK_GOOD)
        return ip_why_not(&network, fault, text, why, why_size);
    networks->at[networks->count++] = network;
    return true;
}

bool networks_hold(const struct networks *networks, const struct ip *ip)
{
    if (ip->family == 0)
        return networks->has_unix;
    for (size_t i = 0; i < networks->count; i++)
        if (network_holds(&networks->at[i], ip))
            return true;
    return false;
}
