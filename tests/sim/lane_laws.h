/*
 * What must hold of each of weir's lanes between two turns of its loops: state, trust and framing agree with its list,
 * its calls, its riders and the leases on it. The laws are the rows of lane_laws.c.
 */
#ifndef WEIR_SIM_LANE_LAWS_H
#define WEIR_SIM_LANE_LAWS_H

/* The law that was broken by the turn that has just ended; NULL: none was. */
const char *lane_laws_broken(void);

#endif
