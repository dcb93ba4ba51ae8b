#include "net/proxy_header.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <string.h>

#include "base/num.h"
#include "base/slice.h"

#define SIGNATURE_BYTES 12
#define FIXED_BYTES 16 /* signature, version and command, family, length */

static const char signature[] = "\r\n\r\n\0\r\nQUIT\n";
static const char line_start[] = "PROXY ";

static enum scan_result bad(struct proxy_header *header, const char *why)
{
    header->why = why;
    return SCAN_BAD;
}

/* ---- version 1: PROXY TCP4 source destination port port ---- */

/* Words are separated by exactly one blank. */
static bool proxy_header_take_word(struct slice *rest, struct slice *word)
{
    const char *blank = rest->len > 0 ? memchr(rest->at, ' ', rest->len) : NULL;
    *word = split_take(rest, blank != NULL ? (size_t)(blank - rest->at) : rest->len);
    if (blank != NULL)
        split_take(rest, 1);
    return word->len > 0;
}

static bool proxy_header_take_address(struct slice *rest, bool is_v6, struct ip *ip)
{
    struct slice word;
    return proxy_header_take_word(rest, &word) &&
           (memchr(word.at, ':', word.len) != NULL) == is_v6 && ip_parse(word, ip);
}

static bool take_port(struct slice *rest, uint16_t *port)
{
    struct slice word;
    int64_t number;
    if (!proxy_header_take_word(rest, &word) || !num_parse(word, &number) || number < 0 ||
        number > UINT16_MAX)
        return false;
    *port = (uint16_t)number;
    return true;
}

static bool parse_addresses(struct proxy_header *header, struct slice rest, bool is_v6)
{
    bool ends_in_blank = rest.len > 0 && rest.at[rest.len - 1] == ' ';
    return !ends_in_blank && proxy_header_take_address(&rest, is_v6, &header->ip) &&
           proxy_header_take_address(&rest, is_v6, &header->to) &&
           take_port(&rest, &header->port) && take_port(&rest, &header->to_port) && rest.len == 0;
}

static enum scan_result end_line(struct proxy_header *header)
{
    struct slice rest = slice_of(header->bytes, header->filled - 2U);
    struct slice family;
    split_take(&rest, sizeof line_start - 1);
    proxy_header_take_word(&rest, &family);
    if (slice_eq(family, SLICE("UNKNOWN")))
        return SCAN_FRAME; /* the rest of the line has no meaning */
    bool is_v6 = slice_eq(family, SLICE("TCP6"));
    if (!is_v6 && !slice_eq(family, SLICE("TCP4")))
        return bad(header, "its PROXY header has an unknown address family");
    return parse_addresses(header, rest, is_v6)
               ? SCAN_FRAME
               : bad(header, "its PROXY header has invalid addresses");
}

static enum scan_result proxy_header_take_line(struct proxy_header *header, char byte)
{
    size_t at = header->filled++;
    header->bytes[at] = byte;
    if (at < sizeof line_start - 1)
        return byte == line_start[at] ? SCAN_MORE
                                      : bad(header, "it does not begin with a PROXY header");
    if ((byte == '\n') != (header->bytes[at - 1] == '\r'))
        return bad(header, "its PROXY header does not end in CRLF");
    if (byte == '\n')
        return end_line(header);
    return header->filled < PROXY_LINE_MAX ? SCAN_MORE
                                           : bad(header, "its PROXY header is too long");
}

/* ---- version 2 ---- */

enum { COMMAND_LOCAL = 0x20, COMMAND_PROXY = 0x21 };

/* Streams only: a header about datagrams cannot describe this connection. */
enum { FAMILY_NONE = 0x00, FAMILY_TCP4 = 0x11, FAMILY_TCP6 = 0x21, FAMILY_UNIX = 0x31 };

struct family {
    uint8_t code;
    uint8_t addresses; /* bytes of both addresses and ports */
};

static const struct family families[] = {
    {FAMILY_NONE, 0}, {FAMILY_TCP4, 12}, {FAMILY_TCP6, 36}, {FAMILY_UNIX, 216}};

static const struct family *find_family(uint8_t code)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (families[i].code == code)
            return &families[i];
    return NULL;
}

/* Called when the fixed part has arrived. */
static enum scan_result begin_block(struct proxy_header *header)
{
    const uint8_t *bytes = (const uint8_t *)header->bytes;
    const struct family *family = find_family(bytes[13]);
    unsigned length = (unsigned)bytes[14] << 8 | bytes[15];
    bool is_local = bytes[12] == COMMAND_LOCAL;
    if (length > PROXY_BLOCK_MAX)
        return bad(header, "its PROXY header is too long");
    if (is_local)
        family = &families[0]; /* the family of a LOCAL header has no meaning */
    else if (family == NULL)
        return bad(header, "its PROXY header has an unknown address family");
    if (length < family->addresses)
        return bad(header, "its PROXY header is too short for its addresses");
    unsigned kept =
        family->code == FAMILY_TCP4 || family->code == FAMILY_TCP6 ? family->addresses : 0;
    header->wanted = (uint8_t)(FIXED_BYTES + kept);
    header->left = (uint16_t)(length - kept);
    return SCAN_MORE;
}

static enum scan_result take_fixed(struct proxy_header *header, char byte)
{
    size_t at = header->filled++;
    header->bytes[at] = byte;
    if (at < SIGNATURE_BYTES)
        return byte == signature[at] ? SCAN_MORE
                                     : bad(header, "it does not begin with a PROXY header");
    if (at == SIGNATURE_BYTES && byte != COMMAND_LOCAL && byte != COMMAND_PROXY)
        return bad(header, "its PROXY header has an unknown version or command");
    return header->filled == FIXED_BYTES ? begin_block(header) : SCAN_MORE;
}

/* Reads both addresses, then both ports. */
static void read_addresses(struct proxy_header *header)
{
    const char *addresses = header->bytes + FIXED_BYTES;
    uint16_t ports[2];
    struct ip *ips[] = {&header->ip, &header->to};
    size_t size = header->wanted == FIXED_BYTES + 12 ? 4 : 16;
    for (size_t i = 0; i < 2; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET};
        struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
        if (size == 4)
            memcpy(&in.sin_addr, addresses + i * size, size);
        else
            memcpy(&in6.sin6_addr, addresses + i * size, size);
        *ips[i] = ip_of(size == 4 ? (const struct sockaddr *)&in : (const struct sockaddr *)&in6);
    }
    memcpy(ports, addresses + 2 * size, sizeof ports);
    header->port = ntohs(ports[0]);
    header->to_port = ntohs(ports[1]);
}

/* Called after the fixed part has been checked. */
static enum scan_result proxy_header_take_block(struct proxy_header *header, const char *data,
                                                size_t n, size_t *used)
{
    size_t kept = (size_t)(header->wanted - header->filled);
    if (kept > n)
        kept = n;
    if (kept > 0)
        memcpy(header->bytes + header->filled, data, kept);
    header->filled = (uint8_t)(header->filled + kept);
    size_t skipped = n - kept < header->left ? n - kept : header->left;
    header->left = (uint16_t)(header->left - skipped);
    *used = kept + skipped;
    if (header->filled < header->wanted || header->left > 0)
        return SCAN_MORE;
    if (header->wanted > FIXED_BYTES)
        read_addresses(header);
    return SCAN_FRAME;
}

/* ---- both versions ---- */

enum scan_result proxy_header_scan(struct proxy_header *header, const char *data, size_t n,
                                   size_t *used)
{
    enum scan_result result = SCAN_MORE;
    for (*used = 0; *used < n && header->wanted == 0 && result == SCAN_MORE; ++*used) {
        bool is_binary =
            header->filled > 0 ? header->bytes[0] == signature[0] : data[0] == signature[0];
        result = is_binary ? take_fixed(header, data[*used])
                           : proxy_header_take_line(header, data[*used]);
    }
    if (result != SCAN_MORE || header->wanted == 0)
        return result;
    size_t more;
    result = proxy_header_take_block(header, data + *used, n - *used, &more);
    *used += more;
    return result;
}
