/*
 * Invariants of each client's waits between two iterations of weir's loops. A client that does not
 * wait has no request left to take. A client that waits is resumed by something, in time. The laws
 * are the rows of wait_laws.c.
 */
#ifndef WEIR_SIM_WAIT_LAWS_H
#define WEIR_SIM_WAIT_LAWS_H

/* The law that is broken; NULL: none. */
const char *wait_laws_broken(void);

#endif
