/*
 * A Redis Cluster, in runs with run.plan.masters: which node has each slot, and how that changes,
 * step by step.
 *
 * Each node has its own view and its own keys. A slot moves as redis-cli moves it: IMPORTING,
 * MIGRATING, key by key, then SETSLOT NODE at the new owner and at the old owner. The other nodes
 * learn of the move later. A move may also be given up.
 *
 * Laws: weir dials no address but those of the nodes, and asks for the table of nodes at most ten
 * times in a second. Until a node has named another node falsely, a command goes only to nodes that
 * have had its slot or imported it.
 */
#ifndef WEIR_SIM_MASTERS_H
#define WEIR_SIM_MASTERS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/slice.h"

#define MASTERS_MAX 4

struct plan;
struct redis_conn;
struct sockaddr_in;

/*
 * Makes the seed's run a run with a cluster. The numbers of the cluster are drawn from a stream of
 * their own.
 */
void masters_plan(struct plan *plan);

/* True if a run with a cluster may have this fault. */
bool masters_has(const char *fault, bool is_on_link);

void masters_start(void);

/*
 * Ends all moves and faults: every slot has an owner, and all nodes know it, are up and answer
 * truthfully.
 */
void masters_end(void);
void masters_stop(void);

/* Faults: see faults.c. */
void masters_move_slot(uint64_t ns, uint64_t pick);
void masters_restart_node(uint64_t ns, uint64_t pick);
void masters_let_lie(uint64_t ns, uint64_t pick);

/* weir dials this address. Returns the node's index. */
unsigned masters_dialled(const struct sockaddr_in *address);

/* A node is about to execute this command. */
void masters_hear(unsigned which, const struct redis_conn *conn, const struct slice *argv,
                  size_t argc);

/*
 * True if the slot was between two nodes for longer than weir retries, counted for a request sent
 * at said_ns and answered now.
 */
bool masters_was_parted(unsigned slot, uint64_t said_ns);

/* True if the slot was moving at some time since since_ns. */
bool masters_was_open(unsigned slot, uint64_t since_ns);

/*
 * True if the slot has moved since said_ns, and before. A node may have redirected one request and
 * run the next.
 */
bool masters_moved_again(unsigned slot, uint64_t said_ns);

/* True if a node has answered falsely since said_ns. */
bool masters_has_lied(uint64_t said_ns);

#endif
