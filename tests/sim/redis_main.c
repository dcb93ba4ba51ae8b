/*
 * The model of Redis as a program. The program reads commands from standard input, one a line:
 *
 *   new VERSION IS_VALKEY SEED TIME_US FIRST_ID USER   a new server without connections;
 *                                                      USER as in an ACL file
 *   node ... as new ...               the same as a node of a cluster
 *   join MYSELF ID PORT ID PORT       of these two nodes, at 127.0.0.1; MYSELF is 0 or 1
 *   own FIRST LAST NODE               these slots belong to the node
 *   migrate SLOT NODE                 the slot migrates to the node
 *   import SLOT NODE                  the slot is imported from the node
 *   open N PEER                       a connection; N counts from 0
 *   send N HEX                        bytes of connection N; then the server runs until idle
 *   clock US                          advances the clock, step by step where events are due
 *   close N
 *   stall US                          the server executes nothing for so long
 *   restart KEEPS_DATA PASSWORD       drops all connections; no PASSWORD: none is required
 *   show                              prints each connection's output since the last show,
 *                                     as lines "N HEX" and "N closed", then a line "."
 *
 * Used by the test that compares the model with a real server. Exit status 2: an unknown line.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/sim/redis.h"
#include "tests/sim/redis_text.h"

#define CONNS_MAX 64
#define PIECE 16384 /* bytes that a server reads at once */

struct world {
    struct redis *redis; /* NULL: none yet */
    uint64_t now_us;
    struct redis_conn *conns[CONNS_MAX]; /* NULL: not open */
    struct text got[CONNS_MAX];          /* output that was not shown yet */
};

/* Runs the server until idle, and collects the output. */
static void settle(struct world *world)
{
    while (redis_step(world->redis))
        ;
    for (unsigned i = 0; i < CONNS_MAX; i++) {
        if (world->conns[i] == NULL)
            continue;
        struct slice out = redis_output(world->conns[i]);
        text_add(&world->got[i], out);
        redis_taken(world->conns[i], out.len);
    }
}

static void drop(struct world *world)
{
    for (unsigned i = 0; i < CONNS_MAX; i++)
        text_fini(&world->got[i]);
    if (world->redis != NULL)
        redis_free(world->redis);
    *world = (struct world){0};
}

static bool begin(struct world *world, const char *words, bool is_cluster)
{
    struct redis_config config = {.is_cluster = is_cluster};
    unsigned is_valkey;
    int used = 0;
    drop(world);
    if (sscanf(words, "%" SCNu32 " %u %" SCNu64 " %" SCNu64 " %" SCNu64 " %n", &config.version,
               &is_valkey, &config.seed, &config.time_us, &config.first_id, &used) != 5)
        return false;
    config.users = words + used;
    config.is_valkey = is_valkey != 0;
    world->now_us = config.time_us;
    world->redis = redis_new(&config);
    return true;
}

static int digit(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool send_hex(struct world *world, struct redis_conn *conn, const char *hex)
{
    struct text bytes = {0};
    for (; digit(hex[0]) >= 0 && digit(hex[1]) >= 0; hex += 2) {
        char byte = (char)(digit(hex[0]) * 16 + digit(hex[1]));
        text_add(&bytes, slice_of(&byte, 1));
    }
    for (size_t at = 0; at < bytes.len; at += PIECE) {
        redis_feed(conn, bytes.at + at, bytes.len - at < PIECE ? bytes.len - at : PIECE);
        settle(world);
    }
    text_fini(&bytes);
    return *hex == '\0';
}

/* Advances in steps, so that events come in their order. */
static void advance(struct world *world, uint64_t us)
{
    uint64_t end_us = world->now_us + us;
    for (;;) {
        uint64_t next_us = redis_next_us(world->redis);
        bool is_last = next_us >= end_us;
        world->now_us = is_last ? end_us : next_us > world->now_us ? next_us : world->now_us + 1;
        redis_clock(world->redis, world->now_us);
        settle(world);
        if (is_last)
            return;
    }
}

static void show(struct world *world)
{
    for (unsigned i = 0; i < CONNS_MAX; i++) {
        struct redis_conn *conn = world->conns[i];
        if (conn == NULL)
            continue;
        struct text *got = &world->got[i];
        if (got->len > 0)
            printf("%u ", i);
        for (size_t k = 0; k < got->len; k++)
            printf("%02x", (unsigned char)got->at[k]);
        if (got->len > 0)
            printf("\n");
        got->len = 0;
        if (!redis_wants_close(conn))
            continue;
        printf("%u closed\n", i);
        redis_disconnect(conn);
        world->conns[i] = NULL;
    }
    printf(".\n");
}

static void close_conn(struct world *world, unsigned n)
{
    redis_disconnect(world->conns[n]);
    world->conns[n] = NULL;
    settle(world);
}

static void restart(struct world *world, bool keeps_data, const char *password)
{
    redis_restart(world->redis, keeps_data, *password != '\0' ? password : NULL);
    memset(world->conns, 0, sizeof world->conns);
}

static bool join(struct world *world, const char *line)
{
    char ids[2][41];
    unsigned ports[2], myself;
    if (sscanf(line, "join %u %40s %u %40s %u", &myself, ids[0], &ports[0], ids[1], &ports[1]) !=
            5 ||
        myself > 1)
        return false;
    const struct redis_node nodes[] = {{ids[0], "127.0.0.1", ports[0]},
                                       {ids[1], "127.0.0.1", ports[1]}};
    redis_join(world->redis, nodes, 2, myself);
    return true;
}

/* Runs a line about slots. False: another line. */
static bool obey_cluster(struct world *world, const char *line)
{
    unsigned first, last, node;
    if (sscanf(line, "own %u %u %u", &first, &last, &node) == 3)
        redis_own(world->redis, first, last, node, 1);
    else if (sscanf(line, "migrate %u %u", &first, &node) == 2)
        redis_migrate(world->redis, first, node);
    else if (sscanf(line, "import %u %u", &first, &node) == 2)
        redis_import(world->redis, first, node);
    else
        return join(world, line);
    return true;
}

static bool obey(struct world *world, char *line)
{
    unsigned n;
    int used = 0;
    if (strncmp(line, "new ", 4) == 0)
        return begin(world, line + 4, false);
    if (strncmp(line, "node ", 5) == 0)
        return begin(world, line + 5, true);
    if (world->redis == NULL)
        return false;
    if (strcmp(line, "show") == 0) {
        show(world);
    } else if (sscanf(line, "open %u %n", &n, &used) == 1 && n < CONNS_MAX &&
               world->conns[n] == NULL) {
        world->conns[n] = redis_connect(world->redis, NULL, line + used);
        settle(world);
    } else if (sscanf(line, "send %u %n", &n, &used) == 1 && n < CONNS_MAX) {
        return world->conns[n] == NULL || send_hex(world, world->conns[n], line + used);
    } else if (sscanf(line, "restart %u %n", &n, &used) == 1) {
        restart(world, n != 0, line + used);
    } else if (strncmp(line, "stall ", 6) == 0) {
        redis_slow_reader(world->redis, strtoull(line + 6, NULL, 10));
    } else if (strncmp(line, "clock ", 6) == 0) {
        advance(world, strtoull(line + 6, NULL, 10));
    } else if (sscanf(line, "close %u", &n) == 1 && n < CONNS_MAX) {
        if (world->conns[n] != NULL)
            close_conn(world, n);
    } else {
        return obey_cluster(world, line);
    }
    return true;
}

int main(void)
{
    struct world world = {0};
    char *line = NULL;
    size_t room = 0;
    ssize_t len;
    bool is_good = true;
    while (is_good && (len = getline(&line, &room, stdin)) > 0) {
        line[len - 1] = line[len - 1] == '\n' ? '\0' : line[len - 1];
        is_good = obey(&world, line);
        if (!is_good)
            fprintf(stderr, "not understood: %.100s\n", line);
    }
    free(line);
    drop(&world);
    return is_good ? 0 : 2;
}
