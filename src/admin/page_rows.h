/*
 * The rows of the page's tables. page/page.js makes the same rows, cell by cell.
 */
#ifndef WEIR_ADMIN_PAGE_ROWS_H
#define WEIR_ADMIN_PAGE_ROWS_H

#include "admin/snapshot.h"
#include "base/text.h"

#define PAGE_LIMITS HISTORY_LIMITS
#define PAGE_TOP 10
#define PAGE_EVENTS 20

/* As people say it: "does not answer". */
const char *page_node_state(enum node_state state);

void page_nodes(struct text *out, const struct snapshot *snapshot);
void page_limits(struct text *out, const struct snapshot *snapshot);
void page_named(struct text *out, const struct snapshot *snapshot);
void page_top(struct text *out, const struct snapshot *snapshot, enum top_by by);
void page_classes(struct text *out, const struct snapshot *snapshot);
void page_listeners(struct text *out, const struct snapshot *snapshot);
void page_events(struct text *out, const struct snapshot *snapshot);

/* Sums over all reasons: connections refused; connections closed. */
uint64_t listener_turned_away(const struct listener_counts *counts);
uint64_t listener_closed(const struct listener_counts *counts);

/* Of a node, or of all: connections there now; those that have failed. */
uint64_t lanes_there(const struct lane_counts *lanes);
uint64_t lanes_lost(const struct lane_counts *lanes);

#endif
