/*
 * One function for each metric that is not about the process: it writes the metric's series. The table is in
 * admin/metrics.c.
 */
#ifndef WEIR_ADMIN_SHOW_H
#define WEIR_ADMIN_SHOW_H

#include "admin/sheet.h"

#define METRICS_RULES 128 /* how many limits have series of their own; the others share the label rule="_other" */

/* show_clients.c */
void show_accepted(struct sheet *s);
void show_accept_errors(struct sheet *s);
void show_open(struct sheet *s);
void show_open_limit(struct sheet *s);
void show_rejected(struct sheet *s);
void show_closed(struct sheet *s);
void show_commands(struct sheet *s);
void show_protocol_errors(struct sheet *s);
void show_fates(struct sheet *s);
void show_read(struct sheet *s);
void show_written(struct sheet *s);
void show_pauses(struct sheet *s);
void show_limit_commands(struct sheet *s);
void show_requests(struct sheet *s);
void show_upstream_times(struct sheet *s);
void show_overhead(struct sheet *s);

/* show_limits.c */
void show_decisions(struct sheet *s);
void show_rates(struct sheet *s);
void show_bursts(struct sheet *s);
void show_rules(struct sheet *s);
void show_tracked(struct sheet *s);
void show_subjects(struct sheet *sheet);
void show_subjects_limit(struct sheet *sheet);
void show_overflow(struct sheet *sheet);
void show_blocks(struct sheet *s);
void show_blocked(struct sheet *s);
void show_near(struct sheet *s);
void show_delays(struct sheet *s);
void show_share_waits(struct sheet *s);
void show_named(struct sheet *s);
void show_named_info(struct sheet *s);
void show_named_overrides(struct sheet *s);
void show_named_times(struct sheet *s);

/* show_upstream.c */
void show_up(struct sheet *s);
void show_upstream_info(struct sheet *s);
void show_masters(struct sheet *s);
void show_has_master(struct sheet *s);
void show_lags(struct sheet *s);
void show_epochs(struct sheet *s);
void show_changes(struct sheet *s);
void show_sent(struct sheet *s);
void show_states(struct sheet *s);
void show_oldest(struct sheet *s);
void show_lanes(struct sheet *s);
void show_in_flight(struct sheet *s);
void show_blocking(struct sheet *s);
void show_subscribed(struct sheet *s);
void show_opened(struct sheet *s);
void show_losses(struct sheet *s);
void show_slots(struct sheet *s);
void show_slots_moving(struct sheet *s);
void show_slots_served(struct sheet *s);
void show_redirects(struct sheet *s);
void show_error_replies(struct sheet *s);
void show_pushes_dropped(struct sheet *s);
void show_lanes_limit(struct sheet *s);

#endif
