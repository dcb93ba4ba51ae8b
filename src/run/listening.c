#include "run/listening.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "net/listen.h"
#include "run/endpoint.h"

#define ONLY_THE_OWNER 0177 /* what the mode of the operators' socket is not */

/* One address, as configured. */
struct place {
    char text[ADDRESS_TEXT];
    const char *path; /* of a unix socket that has been opened */
    struct entrance entrance;
};

struct listening {
    struct place *places;
    size_t n_places;
    unsigned workers;
    struct opening *openings; /* worker by worker, n_places each */
};

static void say_cannot_listen(const char *where, bool is_admin, int error)
{
    const char *remedy = "";
    if (error == EADDRINUSE)
        remedy = is_admin ? ": set socket= in [admin] or stop the other server"
                          : ": set listen= in [weir] or stop the other server";
    else if (error == EACCES)
        remedy = ": choose a port above 1023 or a folder that is yours";
    log_error("cannot listen on %s: %s%s", where, error == EADDRINUSE ? "it is in use" : strerror(error), remedy);
}

/* No thread has been started yet: the mask is the process' own for a moment. */
static int open_socket(struct endpoint *at, bool is_admin)
{
    if (!is_admin)
        return listen_open(at);
    mode_t before = umask(ONLY_THE_OWNER);
    int fd = listen_open(at);
    umask(before);
    return fd;
}

static bool open_for_all(struct listening *l, size_t i, struct endpoint *at)
{
    struct place *place = &l->places[i];
    int fd = -1;
    for (unsigned w = 0; w < l->workers; w++) {
        if (w == 0 || !place->entrance.is_unix)
            fd = open_socket(at, place->entrance.is_admin);
        if (fd < 0) {
            say_cannot_listen(place->text, place->entrance.is_admin, -fd);
            return false;
        }
        l->openings[w * l->n_places + i] = (struct opening){fd, &place->entrance};
    }
    return true;
}

static bool listen_on(struct listening *l, size_t i, const struct listen *listen, bool is_admin)
{
    const struct address *address = &listen->address;
    struct place *place = &l->places[i];
    struct address shown = *address;
    struct endpoint at;
    char text[ADDRESS_TEXT];
    address_print(address, place->text, sizeof place->text);
    uint8_t index = (uint8_t)(i < COUNTED_LISTENERS - 1 ? i : COUNTED_LISTENERS - 1);
    place->entrance = (struct entrance){
        .listener = place->text,
        .is_unix = address->is_unix,
        .has_proxy_header = listen->has_proxy_header,
        .is_admin = is_admin,
        .index = index,
    };
    const char *why = endpoint_resolve(address, &at);
    if (why)
        log_error("cannot listen on %s: %s", place->text, why);
    if (why || !open_for_all(l, i, &at))
        return false;
    if (address->is_unix)
        place->path = address->host;
    else
        shown.port = endpoint_port(&at);
    address_print(&shown, text, sizeof text);
    log_info("%s %s%s", is_admin ? "operators' socket:" : "listening on", text,
             listen->has_proxy_header ? " behind proxies (PROXY protocol)" : "");
    return true;
}

static bool listen_everywhere(struct listening *l, const struct config *config)
{
    for (size_t i = 0; i < config->n_listens; i++)
        if (!listen_on(l, i, &config->listens[i], false))
            return false;
    const struct listen admin = {.address = {.host = config->admin_socket, .is_unix = true}};
    return !config->admin_socket || listen_on(l, config->n_listens, &admin, true);
}

struct listening *listening_open(const struct config *config)
{
    struct listening *l = mem_zalloc(1, sizeof *l);
    l->workers = config->workers;
    l->n_places = config->n_listens + (config->admin_socket != NULL);
    l->places = mem_zalloc(l->n_places, sizeof *l->places);
    l->openings = mem_zalloc(l->n_places * l->workers, sizeof *l->openings);
    for (size_t i = 0; i < l->n_places * l->workers; i++)
        l->openings[i].fd = -1;
    if (listen_everywhere(l, config))
        return l;
    listening_close(l);
    return NULL;
}

void listening_shut(struct listening *l)
{
    for (size_t i = 0; i < l->n_places * l->workers; i++) {
        bool is_shared = i >= l->n_places && l->places[i % l->n_places].entrance.is_unix;
        if (l->openings[i].fd >= 0 && !is_shared)
            close(l->openings[i].fd);
        l->openings[i].fd = -1;
    }
    for (size_t i = 0; i < l->n_places; i++) {
        if (l->places[i].path)
            unlink(l->places[i].path);
        l->places[i].path = NULL;
    }
}

void listening_close(struct listening *l)
{
    if (!l)
        return;
    listening_shut(l);
    free(l->places);
    free(l->openings);
    free(l);
}

size_t listening_count(const struct listening *l)
{
    return l->n_places;
}

const struct opening *listening_openings(const struct listening *l, unsigned worker)
{
    return l->openings + worker * l->n_places;
}
