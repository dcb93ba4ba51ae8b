/*
 * A Redis Cluster, in runs before one (run.plan.masters): which node has each slot, and how that changes, step by step.
 *
 * Each node has its own view and its own keys. A slot moves as redis-cli moves it: IMPORTING, MIGRATING, key by key, then
 * SETSLOT NODE at its new owner, at its old one, and the others hear of it later. Or the move is given up.
 *
 * Laws. Weir dials no address but the nodes', and asks for their table at most ten times in a second. Until a node has
 * named another falsely, a command goes to no node that has neither had its slot nor expected it.
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

/* The seed's run becomes one before a cluster. Its numbers are drawn from a stream of their own. */
void masters_plan(struct plan *plan);

/* Is this a fault of such a run? */
bool masters_has(const char *fault, bool is_on_link);

void masters_start(void);

/* All slots are somewhere, all nodes know it, are up and honest, and it stays so. */
void masters_end(void);
void masters_stop(void);

/* Faults: see faults.c. */
void masters_move_slot(uint64_t ns, uint64_t pick);
void masters_restart_node(uint64_t ns, uint64_t pick);
void masters_let_lie(uint64_t ns, uint64_t pick);

/* Weir dials this address: which node it is. */
unsigned masters_dialled(const struct sockaddr_in *address);

/* A node is about to carry this out. */
void masters_hear(unsigned which, const struct redis_conn *conn, const struct slice *argv, size_t argc);

/* What was said then, and is answered now: has its slot been half here, half there for as long as weir tries again? */
bool masters_was_parted(unsigned slot, uint64_t said_ns);

/* Has it been on its way since then, at some time? */
bool masters_was_open(unsigned slot, uint64_t since_ns);

/* Has it moved since then, and before? A node may have redirected one request, and run the next. */
bool masters_moved_again(unsigned slot, uint64_t said_ns);

/* Has a node lied since then? */
bool masters_has_lied(uint64_t said_ns);

#endif
