/*
 * How many clients the limit on open files leaves room for.
 */
#ifndef WEIR_RUN_DESCRIPTORS_H
#define WEIR_RUN_DESCRIPTORS_H

#include <stdbool.h>

/*
 * Raise the limit as far as max_clients needs and the system allows. Returns max_clients, or the fewer that fit, which
 * the log then says. With private lanes each client takes two descriptors.
 * `others` are wanted for something else.
 */
unsigned descriptors_fit(unsigned max_clients, bool lanes_private, unsigned others);

#endif
