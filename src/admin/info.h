/* The text of INFO on the admin socket: a snapshot as tables for persons. */
#ifndef WEIR_ADMIN_INFO_H
#define WEIR_ADMIN_INFO_H

#include <stdbool.h>

#include "admin/snapshot.h"
#include "base/slice.h"
#include "base/text.h"

/*
 * Appends the section named limits, clients or upstream, in any case. Appends all if `section` is
 * empty.
 */
void info_write(struct text *out, const struct snapshot *snapshot, struct slice section);

#endif
