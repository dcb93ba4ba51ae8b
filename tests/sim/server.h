/*
 * The Redis that weir stands in front of: the model of it as a party of the world, its connections, and how it can fail.
 */
#ifndef WEIR_SIM_SERVER_H
#define WEIR_SIM_SERVER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"
#include "tests/sim/redis.h"

#define SERVER_PORT 6379
#define SERVER_ADMIN "admin" /* the user, and the password, of who speaks with it itself */

/* `turn` commands at most before others have their turn; each takes up to `command_ns`. */
void server_start(const struct redis_config *config, unsigned turn, uint64_t command_ns);
void server_stop(void);

/* All connections are gone, at once or after what they were sent; until server_rise nobody may connect. */
void server_fall(bool with_reset);
void server_rise(bool keeps_data, const struct redis_config *config);
bool server_is_up(void);

/* It does nothing for so long. */
void server_sleep(uint64_t ns);

/* From now on each command takes up to so long. */
void server_slow(uint64_t command_ns);

/* Its date jumps by so much. */
void server_step_clock(int64_t us);

/* Where the answer begins to what it carries out now: after so many bytes of that connection. */
struct answer_at {
    unsigned conn; /* its number */
    uint64_t from;
};
struct answer_at server_answering(void);

/* Weir has begun to read it; or the connection is gone. */
bool server_is_read(const struct answer_at *answer);

/* Weir has read the first n bytes of it, and the connection is there. */
bool server_is_read_whole(const struct answer_at *answer, uint64_t n);

struct conn;

/* All connections of which this is so are gone. */
void server_leave_all(bool (*is_one)(const struct conn *conn, uint64_t arg), uint64_t arg, bool with_reset);

/* One of its connections; which, `pick` says. NULL: there is none. */
struct conn *server_picked(uint64_t pick);
/* It closes this one. */
void server_leave(struct conn *conn, bool with_reset);

/* One of them says what is no reply, so that its peer has to close it. */
void server_garble(uint64_t pick);
/* The number by which Redis knows one of its connections; 0: there is none. */
uint64_t server_picked_id(uint64_t pick);

/*
 * Somebody who speaks with Redis itself says a line; its answer, which is one line, is told in its time. Or that there
 * will be none, to whatever has not been answered: Redis has closed the connection, perhaps as it is one too many.
 */
void server_tell(const char *line);
void server_hear(void (*on_told)(struct slice answer), void (*on_left)(void));

struct redis *server_redis(void);

/*
 * Several servers (run.plan.servers), at SERVER_HOST(0) and on, which share their keys without delay: see deployment.h.
 * All functions above that fail or change the server mean the leading one.
 */
#define SERVERS_MAX 3
#define SERVER_HOST(i) (INADDR_LOOPBACK + (i))

struct redis *server_redis_of(unsigned which);
void server_lead(unsigned which);

/* As server_fall; from then on it is as if it were down, until it rises with its keys. */
void server_fall_one(unsigned which, bool with_reset);
void server_rise_one(unsigned which);
bool server_is_up_one(unsigned which);
void server_sleep_one(unsigned which, uint64_t ns);

/* Nothing comes to it and nothing comes from it, or no longer so. */
void server_cut(unsigned which, bool is_cut);

#endif
