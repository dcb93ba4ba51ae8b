#include "run/listening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"
#include "run/config/address.h"

#define OPERATORS_ALONE 0600 /* the mode of the operators' socket */

_Static_assert(LISTENS_MAX < LISTEN_ADDRESSES_MAX,
               "each address and the operators' socket has a number of its own");

/* One configured address. */
struct bound_address {
    char text[ADDRESS_TEXT];
    const char *path;            /* file of a unix socket to be removed at the end; NULL: none */
    struct listen_rights rights; /* rights of the file */
    dev_t device;                /* identifies the file, which another process may replace */
    ino_t inode;
    struct listen_address listen_address;
    struct heirloom *sockets;
    size_t n_sockets;
};

struct watched {
    struct opening *openings;
    size_t n;
};

struct listening {
    struct bound_address *all_bound;
    size_t n_places;
    unsigned workers;
    struct watched *watched; /* one for each worker */
};

static void say_cannot_listen(const char *where, const struct listen_address *listen_address,
                              int error)
{
    bool is_admin = listen_address->is_admin;
    const char *remedy = "";
    if (error == EPERM && listen_address->is_unix)
        remedy = ": the user that weir runs as must be a member of the group";
    if (error == EADDRINUSE)
        remedy = is_admin ? ": set socket= in [admin] or stop the other server"
                          : ": set listen= in [weir] or stop the other server";
    else if (error == EACCES)
        remedy = listen_address->is_unix
                     ? ": choose a folder that weir's user may write to; the service has /run/weir"
                     : ": choose a port above 1023";
    else if (error == ENOTSOCK)
        remedy = ": weir does not replace it; choose another path";
    else if (error == ENOENT || error == ENOTDIR)
        remedy = is_admin ? ": its folder does not exist: create it, or set socket= in [admin]"
                          : ": its folder does not exist: create it, or set listen= in [weir]";
    const char *reason = error == EADDRINUSE ? "the address is in use"
                         : error == ENOTSOCK ? "the path exists and is not a socket"
                                             : strerror(error);
    log_error("cannot listen on %s: %s%s", where, reason, remedy);
}

static void add_socket(struct bound_address *bound, int fd, bool is_systemds)
{
    bound->sockets = mem_realloc(bound->sockets, bound->n_sockets + 1, sizeof *bound->sockets);
    bound->sockets[bound->n_sockets++] = (struct heirloom){fd, is_systemds};
}

static void listening_watch(struct listening *l, unsigned worker, int fd,
                            const struct bound_address *bound)
{
    struct watched *watched = &l->watched[worker];
    watched->openings = mem_realloc(watched->openings, watched->n + 1, sizeof *watched->openings);
    watched->openings[watched->n++] = (struct opening){fd, &bound->listen_address};
}

/* Assigns each inherited socket to a worker: connections may be waiting in the socket. */
static void take_inherited(struct listening *l, struct bound_address *bound, struct endpoint *at,
                           struct inherited *inherited)
{
    int fd;
    bool is_systemds;
    while ((fd = inherit_take(inherited, at, &is_systemds)) >= 0) {
        listening_watch(l, (unsigned)(bound->n_sockets % l->workers), fd, bound);
        add_socket(bound, fd, is_systemds);
        /* the file belongs to systemd, or to the predecessor, which may go on serving */
        bound->path = NULL;
    }
}

/* True if several sockets can be bound to the address (SO_REUSEPORT). */
static bool has_peers(const struct bound_address *bound)
{
    int is_shared = 0;
    socklen_t size = sizeof is_shared;
    return !bound->listen_address.is_unix &&
           (bound->n_sockets == 0 ||
            (getsockopt(bound->sockets[0].fd, SOL_SOCKET, SO_REUSEPORT, &is_shared, &size) == 0 &&
             is_shared != 0));
}

static bool open_for_all(struct listening *l, struct bound_address *bound, struct endpoint *at,
                         const struct listen_rights *rights, struct inherited *inherited)
{
    take_inherited(l, bound, at, inherited);
    if (bound->n_sockets > 0 && bound->sockets[0].is_systemds && !bound->listen_address.is_admin &&
        (rights->has_mode || rights->has_group))
        log_warn("%s: systemd sets mode and group of this socket (SocketMode=, SocketGroup=)",
                 bound->text);
    for (unsigned w = (unsigned)bound->n_sockets; w < l->workers; w++) {
        int fd = bound->n_sockets == 0 || has_peers(bound) ? listen_open(at, rights) : -1;
        if (fd >= 0) {
            add_socket(bound, fd, false);
        } else if (bound->n_sockets == 0 || has_peers(bound)) {
            say_cannot_listen(bound->text, &bound->listen_address, -fd);
            return false;
        }
        listening_watch(l, w, fd >= 0 ? fd : bound->sockets[0].fd, bound);
    }
    return true;
}

static void note_file(struct bound_address *bound)
{
    struct stat file;
    if (bound->path != NULL && lstat(bound->path, &file) == 0) {
        bound->device = file.st_dev;
        bound->inode = file.st_ino;
    }
}

/* Removes the file at the path if it is the file that this process made. */
static void remove_file(struct bound_address *bound)
{
    struct stat file;
    if (bound->path != NULL && lstat(bound->path, &file) == 0 && file.st_dev == bound->device &&
        file.st_ino == bound->inode)
        unlink(bound->path);
    bound->path = NULL;
}

static bool listen_on(struct listening *l, size_t i, const struct listen *listen, bool is_admin,
                      struct inherited *inherited)
{
    const struct address *address = &listen->address;
    struct bound_address *bound = &l->all_bound[i];
    struct address shown = *address;
    struct endpoint at;
    char text[ADDRESS_TEXT];
    address_print(address, bound->text, sizeof bound->text);
    bound->rights = listen->rights;
    uint8_t index = (uint8_t)(i < COUNTED_LISTENERS - 1 ? i : COUNTED_LISTENERS - 1);
    bound->listen_address = (struct listen_address){
        .listener = bound->text,
        .is_unix = address->is_unix,
        .is_tls = address->is_tls,
        .has_proxy_header = listen->has_proxy_header,
        .is_admin = is_admin,
        .number = (uint8_t)i,
        .index = index,
    };
    const char *why = address_resolve(address, &at);
    if (why != NULL)
        log_error("cannot listen on %s: %s", bound->text, why);
    bound->path = address->is_unix ? address->host : NULL;
    if (why != NULL || !open_for_all(l, bound, &at, &listen->rights, inherited)) {
        bound->path = NULL; /* the file may belong to another program */
        return false;
    }
    note_file(bound);
    if (!address->is_unix)
        shown.port = endpoint_port(&at);
    address_print(&shown, text, sizeof text);
    log_info("%s %s%s", is_admin ? "operators' socket:" : "listening on", text,
             listen->has_proxy_header ? " behind proxies (PROXY protocol)" : "");
    return true;
}

static bool listen_everywhere(struct listening *l, const struct config *config,
                              struct inherited *inherited)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (!listen_on(l, i, &config->listens[i], false, inherited))
            return false;
    const struct listen admin = {.address = {.host = config->admin_socket, .is_unix = true},
                                 .rights = {.has_mode = true, .mode = OPERATORS_ALONE}};
    return config->admin_socket == NULL || listen_on(l, config->n_listens, &admin, true, inherited);
}

struct listening *listening_open(const struct config *config, struct inherited *inherited)
{
    struct listening *l = mem_zalloc(1, sizeof *l);
    l->workers = config->workers;
    l->n_places = config->n_listens + (config->admin_socket != NULL);
    l->all_bound = mem_zalloc(l->n_places, sizeof *l->all_bound);
    l->watched = mem_zalloc(l->workers, sizeof *l->watched);
    if (listen_everywhere(l, config, inherited))
        return l;
    listening_close(l);
    return NULL;
}

struct heirloom listening_socket(const struct listening *l, size_t i)
{
    for (size_t p = 0; p < l->n_places; i -= l->all_bound[p++].n_sockets)
        if (i < l->all_bound[p].n_sockets)
            return l->all_bound[p].sockets[i];
    return (struct heirloom){.fd = -1};
}

/* True for a predecessor's unix socket with a file that this process has not taken over. */
static bool is_handed_over(const struct bound_address *bound)
{
    return bound->listen_address.is_unix && bound->path == NULL && !bound->sockets[0].is_systemds;
}

/* The path in "unix:/path". */
static const char *listening_path_of(const struct bound_address *bound)
{
    return bound->text + sizeof "unix:" - 1;
}

bool listening_take_over(struct listening *l)
{
    for (size_t i = 0; i < l->n_places; i++) {
        struct bound_address *bound = &l->all_bound[i];
        int error = is_handed_over(bound)
                        ? -listen_set_rights(listening_path_of(bound), &bound->rights)
                        : 0;
        if (error != 0 && error != ENOENT) { /* a socket without a file stays as it is */
            say_cannot_listen(bound->text, &bound->listen_address, error);
            return false;
        }
    }
    for (size_t i = 0; i < l->n_places; i++)
        if (is_handed_over(&l->all_bound[i])) {
            l->all_bound[i].path = listening_path_of(&l->all_bound[i]);
            note_file(&l->all_bound[i]);
        }
    return true;
}

void listening_hand_over(struct listening *l)
{
    for (size_t i = 0; i < l->n_places; i++)
        l->all_bound[i].path = NULL;
}

/* Sockets that systemd made stay open in systemd, with the connections that wait in them. */
void listening_refuse(struct listening *l)
{
    for (size_t i = 0; i < l->n_places; i++) {
        struct bound_address *bound = &l->all_bound[i];
        for (size_t s = 0; s < bound->n_sockets; s++)
            if (!bound->listen_address.is_unix && !bound->sockets[s].is_systemds)
                listen_refuse(bound->sockets[s].fd);
        if (!bound->listen_address.is_admin)
            remove_file(bound);
    }
}

static void shut(struct bound_address *bound)
{
    while (bound->n_sockets > 0)
        close(bound->sockets[--bound->n_sockets].fd);
    remove_file(bound);
}

void listening_shut(struct listening *l, bool has_successor)
{
    for (size_t i = 0; i < l->n_places; i++)
        if (has_successor || !l->all_bound[i].listen_address.is_admin)
            shut(&l->all_bound[i]);
}

void listening_close(struct listening *l)
{
    if (l == NULL)
        return;
    for (size_t i = 0; i < l->n_places; i++) {
        shut(&l->all_bound[i]);
        free(l->all_bound[i].sockets);
    }
    for (unsigned w = 0; w < l->workers; w++)
        free(l->watched[w].openings);
    free(l->all_bound);
    free(l->watched);
    free(l);
}

size_t listening_count(const struct listening *l)
{
    return l->n_places;
}

const struct listen_address *listening_listen_address(const struct listening *l, size_t i)
{
    return &l->all_bound[i].listen_address;
}

const struct opening *listening_openings(const struct listening *l, unsigned worker, size_t *n)
{
    *n = l->watched[worker].n;
    return l->watched[worker].openings;
}
