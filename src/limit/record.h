/*
 * What is remembered of a policy for as long as the process lives, whatever its limits are now: a row of the ledger.
 *
 * Made by limit/ledger.h on one thread; read and counted in by any.
 */
#ifndef WEIR_LIMIT_RECORD_H
#define WEIR_LIMIT_RECORD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "limit/limit.h"

#define LEDGER_NAME_MAX 32

struct subject;

struct record {
    char name[LEDGER_NAME_MAX + 1];
    _Atomic uint16_t slots[SCOPE_COUNT]; /* how many there are */
    _Atomic uint32_t subjects;           /* known at the moment */
    _Atomic bool is_locked;    /* decisions are made under the subject's lock: some set since the start has needed it */
    struct subject *overflow;  /* shared by subjects that have no place or memory of their own; see limit/subject.h */
    struct subject *everybody; /* holds the funnels that are per policy; NULL: there are none */
};

#endif
