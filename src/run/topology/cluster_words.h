/*
 * What is said to people of a cluster: which part of its slots is served, and which masters have given way to which.
 *
 * Main thread. Sends nothing.
 */
#ifndef WEIR_RUN_CLUSTER_WORDS_H
#define WEIR_RUN_CLUSTER_WORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "run/topology/cluster.h"

#define CLUSTER_WORDS_ROOM 480

/* How many slots have a master, and how many of these masters can be reached. */
struct cluster_service {
    size_t n_masters, n_masters_up;
    size_t n_served, n_up; /* slots */
};

struct cluster_service cluster_words_look(const struct cluster *cluster);

/*
 * "3 masters serve all 16384 slots"; "5461 slots are away: 10.0.0.3:7000"; "no node has told which nodes there are:
 * ...". True: every slot is served by a master that can be reached.
 */
bool cluster_words_print(const struct cluster *cluster, char out[CLUSTER_WORDS_ROOM]);

/*
 * "10.0.0.1:7000 serves no slots any more, 10.0.0.4:7000 serves slot 0" of a row of `before`: its node is in no
 * master's row of `now`. False: row i has one.
 */
bool cluster_words_print_change(const struct topology *before, const struct topology *now, size_t i,
                                char out[CLUSTER_WORDS_ROOM]);

#endif
