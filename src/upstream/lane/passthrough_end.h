/*
 * The end of a passthrough lane (lane_pass_through). The number of answers still to come is
 * unknown. A nonce is sent behind all requests: the bytes before the nonce's answer are the
 * owner's, and then the lane closes. An owner that has sent CLIENT REPLY OFF or SKIP gets no answer
 * to the first nonces. RESET and another nonce therefore follow the first nonces: RESET ends OFF
 * and SKIP.
 */
#ifndef WEIR_UPSTREAM_PASSTHROUGH_END_H
#define WEIR_UPSTREAM_PASSTHROUGH_END_H

#include "upstream/lane/lane.h"

/*
 * Nothing more will be sent on the lane. When the owner has received everything, the owner is
 * woken, and has no lane. May be called again. If the owner has half-closed its own connection,
 * lane_part is called instead: Redis sends the bytes that it can write at once.
 */
void passthrough_end_begin(struct lane *lane);

/* Take these bytes on a lane in LANE_ENDING. */
void passthrough_end_take(struct lane *lane, struct slice bytes);

/* No more bytes will arrive on a lane in LANE_ENDING. The buffered bytes go to the owner. */
void passthrough_end_flush(struct lane *lane);

#endif
