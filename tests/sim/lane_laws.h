/*
 * Invariants of each of weir's lanes between two iterations of its loop. State, trust and framing
 * agree with the list, the calls, the lane users and the leases of the lane. The laws are the rows
 * of lane_laws.c.
 */
#ifndef WEIR_SIM_LANE_LAWS_H
#define WEIR_SIM_LANE_LAWS_H

/* The law that the last iteration has broken; NULL: none. */
const char *lane_laws_broken(void);

#endif
