/* The Redis behind weir: the model as a party of the world, its connections, and its faults. */
#ifndef WEIR_SIM_SERVER_H
#define WEIR_SIM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/sim/redis.h"

#define SERVER_PORT 6379
/* user and password of the administrator that talks to Redis directly */
#define SERVER_ADMIN "admin"

/* A step executes at most `turn` commands; each takes up to `command_ns`. */
void server_start(const struct redis_config *config, unsigned turn, uint64_t command_ns);
void server_stop(void);

/*
 * fall: closes all connections, at once or after their output; no connection is accepted until
 * server_rise.
 */
void server_fall(bool with_reset);
void server_rise(bool keeps_data, const struct redis_config *config);
bool server_is_up(void);

/* The server does nothing for `ns`. */
void server_sleep(uint64_t ns);

/* From now on each command takes up to `command_ns`. */
void server_slow(uint64_t command_ns);

/* The server's date jumps by `us`. */
void server_step_clock(int64_t us);

/* Where the answer to the current command begins: the connection, and its byte offset. */
struct answer_at {
    unsigned conn; /* number of the connection */
    uint64_t from;
};
struct answer_at server_answering(void);

/* True if weir has begun to read the answer, or the connection is closed. */
bool server_is_read(const struct answer_at *answer);

/* True if weir has read the first n bytes of the answer, and the connection is open. */
bool server_is_read_whole(const struct answer_at *answer, uint64_t n);

struct conn;

/* Closes all connections for which is_one is true. */
void server_leave_all(bool (*is_one)(const struct conn *conn, uint64_t arg), uint64_t arg,
                      bool with_reset);

/* A connection, chosen by `pick`. NULL: none. */
struct conn *server_picked(uint64_t pick);
/* Redis closes this connection. */
void server_leave(struct conn *conn, bool with_reset);

/* Sends invalid bytes on a connection, which weir must then close. */
void server_garble(uint64_t pick);
/* The CLIENT ID of a connection, chosen by `pick`; 0: none. */
uint64_t server_picked_id(uint64_t pick);

/*
 * tell: an administrator sends Redis a command line. hear: sets the callbacks for its answer, which
 * is one line, and for a close by Redis. After a close no outstanding command is answered. Redis
 * also closes the connection if Redis has too many connections.
 */
void server_tell(const char *line);
void server_hear(void (*on_told)(struct slice answer), void (*on_left)(void));

struct redis *server_redis(void);

/*
 * Several servers (run.plan.servers), from SERVER_HOST(0) on, with shared keys: see deployment.h.
 * All functions above that fail or change the server mean the leading server.
 */
#define SERVERS_MAX 3
#define SERVER_HOST(i) (INADDR_LOOPBACK + (i))

struct redis *server_redis_of(unsigned which);
void server_lead(unsigned which);

/* As server_fall; the server stays down until it rises with its keys. */
void server_fall_one(unsigned which, bool with_reset);
void server_rise_one(unsigned which);
bool server_is_up_one(unsigned which);
void server_sleep_one(unsigned which, uint64_t ns);

/* Stops all bytes to and from the server, or lets them pass again. */
void server_cut(unsigned which, bool is_cut);

#endif
