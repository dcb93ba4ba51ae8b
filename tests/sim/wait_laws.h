/*
 * What must hold of each client's waits between two turns of weir's loops: a client that waits for nothing has had its
 * requests taken; what a client waits for is there to resume it, and in time. The laws are the rows of wait_laws.c.
 */
#ifndef WEIR_SIM_WAIT_LAWS_H
#define WEIR_SIM_WAIT_LAWS_H

/* The law that is broken; NULL: none is. */
const char *wait_laws_broken(void);

#endif
