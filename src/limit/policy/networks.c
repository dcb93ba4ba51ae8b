#include "limit/policy/networks.h"

#include "base/num.h"
#include "base/split.h"
#include "base/why.h"

enum network_fault network_parse(struct network *network, struct slice text)
{
    struct slice address, prefix = text; /* .at is NULL when there is no '/' */
    split_next(&prefix, '/', &address);
    if (!ip_parse(address, &network->ip))
        return NETWORK_NO_ADDRESS;
    int64_t bits = (int64_t)ip_bits(&network->ip);
    if (prefix.at != NULL && (!num_parse(prefix, &bits) || bits < 0 || bits > (int64_t)ip_bits(&network->ip)))
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

static bool why_not(const struct network *network, enum network_fault fault, struct slice text, char *why,
                    size_t why_size)
{
    char printed[IP_TEXT_MAX];
    if (fault == NETWORK_BAD_PREFIX)
        return why_set(why, why_size, "\"%.*s\": the prefix length must be 0 to %u", WHY_SLICE(text),
                       ip_bits(&network->ip));
    if (fault == NETWORK_NO_ADDRESS)
        return why_set(why, why_size, "\"%.*s\" is not an address: write 192.0.2.7, 10.1.0.0/16, 2001:db8::/32 or unix",
                       WHY_SLICE(text));
    ip_print(&network->ip, printed);
    return why_set(why, why_size, "\"%.*s\" names an address beyond its prefix length: the network is %s/%u",
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
        return why_not(&network, fault, text, why, why_size);
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
