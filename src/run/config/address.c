#include "run/config/address.h"

#include <grp.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#include "base/mem.h"
#include "base/num.h"
#include "base/slice.h"

#define HOST_MAX 253
#define PATH_MAX_BYTES (sizeof(((struct sockaddr_un *)0)->sun_path) - 1)

static const struct slice unix_scheme = {"unix:", 5}, tls_scheme = {"tls:", 4};

static bool address_is_host(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] <= ' ' || strchr("[]/,", text.at[i]) != NULL)
            return false;
    return text.len > 0 && text.len <= HOST_MAX;
}

static bool parse_path(struct address *address, struct slice path, struct why why)
{
    if (path.len == 0 || path.at[0] != '/')
        return why_refuse(why, "\"unix:%.*s\": the path of a unix socket must start with /",
                          WHY_SLICE(path));
    for (size_t i = 0; i < path.len; i++)
        if (split_is_space(path.at[i]))
            return why_refuse(why, "\"unix:%.*s\": the path of a unix socket cannot contain blanks",
                              WHY_SLICE(path));
    if (path.len > PATH_MAX_BYTES)
        return why_refuse(why, "the path of a unix socket has at most %zu bytes, this one has %zu",
                          PATH_MAX_BYTES, path.len);
    *address = (struct address){.host = mem_strndup(path.at, path.len), .is_unix = true};
    return true;
}

static bool parse_port(struct slice text, int64_t least, uint16_t *port, struct why why)
{
    int64_t number;
    if (!num_parse(text, &number) || number < least || number > UINT16_MAX)
        return why_refuse(why, "\"%.*s\" is not a port: a port is a number from %d to 65535",
                          WHY_SLICE(text), (int)least);
    *port = (uint16_t)number;
    return true;
}

/*
 * True if the text may be an IPv6 address, perhaps with a port. False for a list of addresses, or a
 * URL.
 */
static bool is_v6_like(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (strchr("0123456789abcdefABCDEF:.%", text.at[i]) == NULL)
            return false;
    return true;
}

/* Sets *host to the host without brackets. `text`: the part of `whole` before the last colon. */
static bool parse_host(struct slice text, struct slice whole, struct slice *host, struct why why)
{
    *host = text;
    bool has_brackets = text.len >= 2 && text.at[0] == '[' && text.at[text.len - 1] == ']';
    if (has_brackets)
        *host = slice_of(text.at + 1, text.len - 2);
    else if (text.len > 0 && memchr(text.at, ':', text.len) != NULL && is_v6_like(whole))
        return why_refuse(why, "write an IPv6 address in brackets: [::1]:6379");
    if (!address_is_host(*host) || (!has_brackets && memchr(host->at, ':', host->len) != NULL))
        return why_refuse(why, "\"%.*s\" is not a host", WHY_SLICE(text));
    return true;
}

/* Returns the number of bytes before the colon of the port; all of `text` if there is no port. */
static size_t host_length(struct slice text)
{
    for (size_t i = text.len; i > 0 && text.at[i - 1] != ']'; i--)
        if (text.at[i - 1] == ':')
            return i - 1;
    return text.len;
}

static bool is_digits(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '9')
            return false;
    return text.len > 0;
}

/* The purpose of an address, and the advice in messages about it. */
struct use {
    const char *scheme; /* before the address */
    const char *forms;  /* valid forms of addresses for this purpose */
    const char *all;    /* advice after an address of this machine */
    int usual_port;
    bool may_choose_port; /* port 0 is valid */
};

static const struct use for_clients = {.scheme = "",
                                       .forms = "host:port, [v6]:port, tls:host:port or unix:/path",
                                       .all =
                                           ", or 0.0.0.0 instead for all addresses of this machine",
                                       .usual_port = 6380,
                                       .may_choose_port = true};
static const struct use for_redis = {.scheme = "",
                                     .forms = "host:port, [v6]:port, tls:host:port or unix:/path",
                                     .all = "",
                                     .usual_port = 6379};
static const struct use for_sentinels = {
    .scheme = "", .forms = "host:port, [v6]:port or tls:host:port", .all = "", .usual_port = 26379};
static const struct use for_http = {.scheme = "",
                                    .forms = "host:port or [v6]:port",
                                    .all = "",
                                    .usual_port = 9380,
                                    .may_choose_port = true};

/* Sets `why` to how to write an address that lacks its port or its host. */
static bool refuse_half(struct slice host, struct slice port, const struct use *use, struct why why)
{
    if (host.len == 0 && is_digits(port))
        return why_refuse(why, "a host is missing before the port: write %s127.0.0.1:%.*s%s",
                          use->scheme, WHY_SLICE(port), use->all);
    if (is_digits(host) && port.len == 0)
        return why_refuse(why, "\"%.*s\" is a port without a host: write %s127.0.0.1:%.*s%s",
                          WHY_SLICE(host), use->scheme, WHY_SLICE(host), use->all);
    if (host.len > 0 && host.at[0] == '/')
        return why_refuse(why, "\"%.*s\" is a path: write unix:%.*s", WHY_SLICE(host),
                          WHY_SLICE(host));
    bool has_brackets = host.len > 2 && host.at[0] == '[' && host.at[host.len - 1] == ']';
    if (host.len > 0 && port.len == 0 &&
        address_is_host(has_brackets ? slice_of(host.at + 1, host.len - 2) : host))
        return why_refuse(why, "\"%.*s\" has no port: write %s%.*s:%d", WHY_SLICE(host),
                          use->scheme, WHY_SLICE(host), use->usual_port);
    return why_refuse(why, "\"%.*s\" is not an address: write %s", WHY_SLICE(host), use->forms);
}

static bool parse_tcp(struct address *address, struct slice text, const struct use *use,
                      struct why why)
{
    struct slice rest = text, host;
    uint16_t port = 0;
    host = split_take(&rest, host_length(text));
    if (rest.len > 0 && rest.at[0] == ':')
        split_take(&rest, 1);
    if (host.len == 0 || rest.len == 0)
        return refuse_half(host, rest, use, why);
    if (slice_eq(host, SLICE("*")) && use->may_choose_port)
        return why_refuse(
            why,
            "* is not a host: write 0.0.0.0:%.*s for all IPv4 addresses of this machine, [::]:%.*s for "
            "those of IPv6, or both",
            WHY_SLICE(rest), WHY_SLICE(rest));
    if (!parse_host(host, text, &host, why) ||
        !parse_port(rest, use->may_choose_port ? 0 : 1, &port, why))
        return false;
    *address = (struct address){.host = mem_strndup(host.at, host.len), .port = port};
    return true;
}

/* ---- URLs ---- */

static bool address_has_scheme(struct slice text, struct slice scheme)
{
    return text.len >= scheme.len && slice_eq_nocase(slice_of(text.at, scheme.len), scheme);
}

static const struct url {
    struct slice scheme;
    bool is_tls;
    const char *instead; /* advice that replaces an address; NULL: an address can be derived */
} urls[] = {
    {{"rediss://", 9}, true, NULL},
    {{"redis://", 8}, false, NULL},
    {{"valkeys://", 10}, true, NULL},
    {{"valkey://", 9}, false, NULL},
    {{"tls://", 6}, true, NULL},
    {{"ssl://", 6}, true, NULL},
    {{"ssl:", 4}, true, NULL},
    {{"tcp://", 6}, false, NULL},
    {{"http://", 7}, false, NULL},
    {{"sentinel://", 11},
     false,
     "write sentinel:NAME@HOST:26379, and more sentinels after a comma"},
    {{"redis+sentinel://", 17},
     false,
     "write sentinel:NAME@HOST:26379, and more sentinels after a comma"},
    {{"redis-sentinel://", 17},
     false,
     "write sentinel:NAME@HOST:26379, and more sentinels after a comma"},
};

/*
 * True for a URL, redis://user:password@host:port/0; sets `why` to the address to write. The login
 * of the URL is not repeated in `why`.
 */
static bool is_url(struct slice text, const struct use *use, struct why why)
{
    size_t u = 0;
    while (u < sizeof urls / sizeof urls[0] && !address_has_scheme(text, urls[u].scheme))
        u++;
    if (u == sizeof urls / sizeof urls[0])
        return false;
    struct slice rest = text, scheme = split_take(&rest, urls[u].scheme.len);
    if (urls[u].instead != NULL) {
        why_refuse(why, "%.*s... is a URL: %s", WHY_SLICE(scheme), urls[u].instead);
        return true;
    }
    bool has_login = false;
    size_t end = 0;
    for (size_t i = rest.len; i > 0 && !has_login; i--)
        if (rest.at[i - 1] == '@') {
            split_take(&rest, i);
            has_login = true;
        }
    while (end < rest.len && rest.at[end] != '/' && rest.at[end] != '?' && rest.at[end] != ',')
        end++;
    rest = slice_of(rest.at, end);
    bool has_port = rest.len > 0 && host_length(rest) < rest.len;
    char port[16] = "";
    if (!has_port)
        snprintf(port, sizeof port, ":%d", use->usual_port);
    why_refuse(why, "%.*s... is a URL: write %s%.*s%s%s", WHY_SLICE(scheme),
               urls[u].is_tls ? "tls:" : "", WHY_SLICE(rest.len > 0 ? rest : SLICE("host")), port,
               has_login ? ", and its user and password in upstream-user and upstream-password-file"
                         : "");
    return true;
}

bool address_is_unix(struct slice text)
{
    return address_has_scheme(text, unix_scheme);
}

bool address_parse_http(struct address *address, struct slice text, struct why why)
{
    if (is_url(text, &for_http, why))
        return false;
    if (address_has_scheme(text, tls_scheme))
        return why_refuse(why, "\"%.*s\": TLS is not supported here", WHY_SLICE(text));
    return parse_tcp(address, text, &for_http, why);
}

static bool parse_tls(struct address *address, struct slice text, const struct use *use,
                      struct why why)
{
    struct slice rest = text;
    struct use own = *use;
    own.scheme = "tls:";
    own.forms = "tls:host:port or tls:[v6]:port";
    split_take(&rest, tls_scheme.len);
    if (address_is_unix(rest))
        return why_refuse(why, "\"%.*s\": TLS is not supported on a unix socket", WHY_SLICE(text));
    bool is_good = parse_tcp(address, rest, &own, why);
    if (is_good)
        address->is_tls = true;
    return is_good;
}

static bool parse_any(struct address *address, struct slice text, const struct use *use,
                      struct why why)
{
    struct slice rest = text;
    if (is_url(text, use, why))
        return false;
    if (address_has_scheme(text, tls_scheme))
        return parse_tls(address, text, use, why);
    if (!address_is_unix(text))
        return parse_tcp(address, text, use, why);
    split_take(&rest, unix_scheme.len);
    return parse_path(address, rest, why);
}

bool address_parse(struct address *address, struct slice text, bool may_choose_port, struct why why)
{
    return parse_any(address, text, may_choose_port ? &for_clients : &for_redis, why);
}

bool address_parse_sentinel(struct address *address, struct slice text, struct why why)
{
    return parse_any(address, text, &for_sentinels, why);
}

bool address_eq(const struct address *a, const struct address *b)
{
    return a->is_unix == b->is_unix && a->port == b->port &&
           (a->is_unix ? strcmp(a->host, b->host) : strcasecmp(a->host, b->host)) == 0;
}

bool address_is_same(const struct address *a, const struct address *b)
{
    struct endpoint of_a, of_b;
    if (address_eq(a, b))
        return true;
    if (a->is_unix || b->is_unix || a->port != b->port || !address_is_literal(a, &of_a) ||
        !address_is_literal(b, &of_b))
        return false;
    struct ip ip_a = ip_of((const struct sockaddr *)&of_a.address),
              ip_b = ip_of((const struct sockaddr *)&of_b.address);
    return ip_eq(&ip_a, &ip_b);
}

void address_fini(struct address *address)
{
    free(address->host);
    *address = (struct address){0};
}

void address_print(const struct address *address, char *out, size_t size)
{
    const char *tls = address->is_tls ? "tls:" : "";
    if (address->is_unix)
        snprintf(out, size, "unix:%s", address->host);
    else if (strchr(address->host, ':') != NULL)
        snprintf(out, size, "%s[%s]:%u", tls, address->host, (unsigned)address->port);
    else
        snprintf(out, size, "%s%s:%u", tls, address->host, (unsigned)address->port);
}

/* ---- endpoints ---- */

static const char *resolve_unix(const struct address *address, struct endpoint *out)
{
    struct sockaddr_un *un = (void *)&out->address;
    size_t len = strlen(address->host);
    if (len >= sizeof un->sun_path)
        return "the path of the socket is too long";
    un->sun_family = AF_UNIX;
    memcpy(un->sun_path, address->host, len + 1);
    out->length = sizeof *un;
    return NULL;
}

static const char *resolve(const struct address *address, int flags, struct endpoint *out)
{
    memset(out, 0, sizeof *out);
    char port[8];
    snprintf(port, sizeof port, "%u", (unsigned)address->port);
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    int error = getaddrinfo(address->host, port, &hints, &found);
    if (error != 0)
        return gai_strerror(error);
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->length = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

bool address_is_literal(const struct address *address, struct endpoint *out)
{
    struct endpoint found = {.length = 0};
    bool is = (address->is_unix ? resolve_unix(address, &found)
                                : resolve(address, AI_NUMERICHOST, &found)) == NULL;
    if (is)
        *out = found;
    return is;
}

const char *address_resolve(const struct address *address, struct endpoint *out)
{
    memset(out, 0, sizeof *out);
    return address->is_unix ? resolve_unix(address, out) : resolve(address, 0, out);
}

uint16_t endpoint_port(const struct endpoint *endpoint)
{
    const struct sockaddr_in *v4 = (const void *)&endpoint->address;
    const struct sockaddr_in6 *v6 = (const void *)&endpoint->address;
    return ntohs(endpoint->address.ss_family == AF_INET6 ? v6->sin6_port : v4->sin_port);
}

void endpoint_print(const struct endpoint *endpoint, char out[ENDPOINT_TEXT])
{
    const struct sockaddr_un *un = (const void *)&endpoint->address;
    char host[64], port[8];
    bool is_v6 = endpoint->address.ss_family == AF_INET6;
    if (endpoint->address.ss_family == AF_UNIX)
        snprintf(out, ENDPOINT_TEXT, "unix:%s", un->sun_path);
    else if (getnameinfo((const struct sockaddr *)&endpoint->address, endpoint->length, host,
                         sizeof host, port, sizeof port, NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        snprintf(out, ENDPOINT_TEXT, "%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
    else
        snprintf(out, ENDPOINT_TEXT, "an unknown address");
}

/* ---- words after an address ---- */

#define ANY_WRITE 0222 /* connect(2) needs the right to write to the socket's file */

/* True for "0660": three octal digits, perhaps after a zero. */
static bool is_octal(struct slice text)
{
    for (size_t i = 0; i < text.len; i++)
        if (text.at[i] < '0' || text.at[i] > '7')
            return false;
    return text.len == 3 || (text.len == 4 && text.at[0] == '0');
}

static bool take_mode(struct listen_rights *rights, struct slice value, struct why why)
{
    mode_t mode = 0;
    if (rights->has_mode)
        return why_refuse(why, "mode is given twice");
    if (!is_octal(value))
        return why_refuse(why, "\"%.*s\" is not a mode: write three octal digits, as in mode 0660",
                          WHY_SLICE(value));
    for (size_t i = 0; i < value.len; i++)
        mode = (mode_t)(mode * 8 + (mode_t)(value.at[i] - '0'));
    if ((mode & ANY_WRITE) == 0)
        return why_refuse(
            why,
            "mode %.*s gives no client write permission, which connecting needs: write mode 0660",
            WHY_SLICE(value));
    rights->has_mode = true;
    rights->mode = mode;
    return true;
}

static bool take_group(struct listen_rights *rights, struct slice value, struct why why)
{
    int64_t number = 0;
    if (rights->has_group)
        return why_refuse(why, "group is given twice");
    if (value.len == 0)
        return why_refuse(why, "the name of the group is missing: write group NAME");
    char *name = mem_strndup(value.at, value.len);
    const struct group *group = getgrnam(name);
    free(name);
    bool is_number = num_parse(value, &number) && number >= 0 && number < UINT32_MAX;
    if (group == NULL && !is_number)
        return why_refuse(why, "this machine has no group %.*s", WHY_SLICE(value));
    rights->has_group = true;
    rights->group = group != NULL ? group->gr_gid : (gid_t)number;
    return true;
}

/* True for "mode=0660", the form of other programs. */
static bool has_equals(struct slice word)
{
    return word.len > 0 && memchr(word.at, '=', word.len) != NULL;
}

/* True for "mode", "mode=0660", "group=ops". */
static bool is_word_of_file(struct slice word)
{
    struct slice rest = word, name = word;
    (void)split_next(&rest, '=', &name);
    return slice_eq_nocase(name, SLICE("mode")) || slice_eq_nocase(name, SLICE("group"));
}

static bool refuse_word(struct slice word, bool is_unix, struct why why)
{
    const char *equals = has_equals(word) ? memchr(word.at, '=', word.len) : NULL;
    struct slice name = slice_of(word.at, equals != NULL ? (size_t)(equals - word.at) : 0);
    struct slice value =
        slice_of(word.at + name.len + (equals != NULL), word.len - name.len - (equals != NULL));
    if (is_unix && is_word_of_file(name))
        return why_refuse(why, "\"%.*s\" has a superfluous =: write %.*s %.*s", WHY_SLICE(word),
                          WHY_SLICE(name), WHY_SLICE(value));
    if (is_unix)
        return why_refuse(
            why,
            "\"%.*s\" is unknown after a path: write mode, group or proxy; a path cannot contain blanks",
            WHY_SLICE(word));
    if (slice_eq_nocase(word, SLICE("tls")) || slice_eq_nocase(word, SLICE("ssl")))
        return why_refuse(why, "TLS goes before the address: write tls:host:port");
    if (is_word_of_file(word))
        return why_refuse(why,
                          "\"%.*s\" is only for unix sockets: unix:/path mode 0660 group www-data",
                          WHY_SLICE(word));
    return why_refuse(
        why,
        "\"%.*s\" is unexpected: separate addresses by commas; only proxy may follow an address",
        WHY_SLICE(word));
}

/*
 * True for "/x.sock;mode=0666", "/x.sock?mode=0666", "/x.sock:0666": the forms of other programs.
 */
static bool has_words_in_path(struct slice address)
{
    struct slice rest = address, last = address;
    while (split_next(&rest, ':', &last))
        ;
    bool has_mode = last.len < address.len && is_octal(last);
    return has_mode || memchr(address.at, ';', address.len) != NULL ||
           memchr(address.at, '?', address.len) != NULL ||
           memmem(address.at, address.len, "mode=", 5) != NULL ||
           memmem(address.at, address.len, "group=", 6) != NULL;
}

bool socket_words_parse(struct socket_words *words, struct slice text, struct why why)
{
    struct slice rest = text, word, value;
    *words = (struct socket_words){0};
    if (!split_word(&rest, &words->address))
        return why_refuse(why, "an address is missing next to a comma");
    if (is_word_of_file(words->address))
        return why_refuse(
            why,
            "\"%.*s\" follows a path: write it without a comma: unix:/path mode 0660 group www-data",
            WHY_SLICE(text));
    bool is_unix = words->address.at[0] == '/' || address_is_unix(words->address);
    if (is_unix && has_words_in_path(words->address))
        return why_refuse(
            why,
            "\"%.*s\" is not a path: write mode and group after the path, with blanks: unix:/path mode 0660",
            WHY_SLICE(words->address));
    while (split_word(&rest, &word)) {
        bool is_mode = is_unix && slice_eq_nocase(word, SLICE("mode"));
        bool is_group = is_unix && slice_eq_nocase(word, SLICE("group"));
        if (slice_eq_nocase(word, SLICE("proxy")) && !words->has_proxy)
            words->has_proxy = true;
        else if (!is_mode && !is_group)
            return refuse_word(word, is_unix, why);
        else if (!split_word(&rest, &value))
            return why_refuse(why, "%s",
                              is_mode ? "the mode is missing: write mode 0660"
                                      : "the name of the group is missing: write group NAME");
        else if (!(is_mode ? take_mode : take_group)(&words->rights, value, why))
            return false;
    }
    return true;
}
