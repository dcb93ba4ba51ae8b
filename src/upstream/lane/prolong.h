/*
 * Lanes of a user say AUTH again when a newer password of the user has been proven: services that give out passwords
 * for a time close connections whose password has lapsed.
 *
 * What Redis answers is dropped: the lane stays what it was. At most once a minute on each lane. The worker's thread
 * only.
 */
#ifndef WEIR_UPSTREAM_PROLONG_H
#define WEIR_UPSTREAM_PROLONG_H

#include "upstream/lane/lanes.h"

/* Once a second. */
void prolong_look(struct lanes *lanes, uint64_t now_ns);

/* True if there is nothing to look at. */
bool prolong_is_over(const struct lanes *lanes);

#endif
