/* The text of INFO on the admin socket: a snapshot as tables for a person to read. */
#ifndef WEIR_ADMIN_INFO_H
#define WEIR_ADMIN_INFO_H

#include <stdbool.h>

#include "admin/snapshot.h"
#include "base/slice.h"
#include "base/text.h"

/*
 * Appends the section called `section`: limits, clients or upstream; case does not matter. An empty
 * `section` appends all three sections.
 */
void info_write(struct text *out, const struct snapshot *snapshot, struct slice section);

#endif
