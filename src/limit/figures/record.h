/*
 * What the ledger remembers of one policy as long as the process lives, whatever its limits are now.
 *
 * Made on one thread by limit/figures/ledger.h, which owns it; the atomic members are used on any.
 */
#ifndef WEIR_LIMIT_RECORD_H
#define WEIR_LIMIT_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "limit/policy/limit.h"

#define LEDGER_NAME_MAX 32

struct observed;
struct slot_rate;
struct subject;

struct record {
    char name[LEDGER_NAME_MAX + 1];
    uint8_t name_len;
    uint16_t number;                     /* in the ledger: less than LEDGER_POLICIES_MAX */
    _Atomic uint16_t slots[SCOPE_COUNT]; /* how many slots limits of each scope have been given */
    _Atomic uint32_t subjects;           /* how many are in the table now */
    _Atomic bool is_locked; /* decide under the subject's lock: some version of this policy since the start needs it */
    struct slot_rate *rates[SCOPE_COUNT]; /* by slot: the rate its limit had last, whatever subject it was for */
    struct observed *observed;            /* how much its subjects have asked for */
    struct subject *overflow;             /* shared by all for whom there is no room or memory; see limit/subjects.h */
    struct subject *everybody;            /* has the funnels with scope PER_POLICY; NULL: there are none */
};

static inline uint16_t record_slots(const struct record *record, enum scope scope)
{
    return atomic_load_explicit(&record->slots[scope], memory_order_acquire);
}

#endif
