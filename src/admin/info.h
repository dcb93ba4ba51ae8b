/*
 * What INFO says on the operators' socket: a snapshot as tables of text, for people.
 */
#ifndef WEIR_ADMIN_INFO_H
#define WEIR_ADMIN_INFO_H

#include <stdbool.h>

#include "admin/snapshot.h"
#include "base/slice.h"
#include "base/text.h"

/* Append the section of that name, in whatever case: limits, clients or upstream; of no name: all. */
void info_write(struct text *out, const struct snapshot *snapshot, struct slice section);

#endif
