#include "tests/sim/links.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tests/sim/client.h"
#include "tests/sim/operator.h"
#include "tests/sim/ops_place.h"
#include "tests/sim/run.h"
#include "tests/sim/scenario.h"
#include "tests/sim/server.h"
#include "tests/sim/trace.h"

#define PATIENCE_NS UINT64_C(10000000) /* longest wait for steps that do not come */
#define AHEAD_MAX 20000                /* most bytes from now to the fault */
#define SHORT_US 10000                 /* a delay that no time-out of a run notices */

enum link_kind { LINK_RESET, LINK_HALF, LINK_LATE, LINK_FULL, LINK_BROKEN, LINK_KINDS };

static const char *const names[LINK_KINDS] = {
    [LINK_RESET] = "reset",   /* by the side that is not weir */
    [LINK_HALF] = "half",     /* a client half-closes; Redis closes */
    [LINK_LATE] = "late",     /* bytes behind the fault's offset arrive later */
    [LINK_FULL] = "full",     /* no byte behind the fault's offset is accepted for a while */
    [LINK_BROKEN] = "broken", /* a system call of weir reports the lost connection */
};

enum armed_state { LINK_AHEAD, LINK_WAITS, LINK_LASTS, LINK_DONE };

struct armed {
    struct link_fault fault;
    enum armed_state state;
    uint64_t due_ns, due_step; /* while waiting, or lasting until due_ns */
    struct conn *conn;         /* set when the bytes were sent; NULL: closed */
    struct bell bell;          /* advances the clock to due_ns */
};

static struct links {
    struct armed **all;
    size_t n;
    unsigned n_active;  /* waiting or lasting */
    uint64_t latest_ns; /* see links_late_ns */
} links;

bool link_kind_named(const char *name, unsigned *kind)
{
    for (*kind = 0; *kind < LINK_KINDS; (*kind)++)
        if (strcmp(names[*kind], name) == 0)
            return true;
    return false;
}

/* ---- marks ---- */

static struct pipe *pipe_of(struct conn *conn, bool to_weir)
{
    return to_weir ? &conn->to_weir : &conn->to_host;
}

static bool is_about(const struct armed *armed, const struct conn *conn, bool to_weir)
{
    const struct conn_name *whose = &armed->fault.whose;
    return whose->side == conn->name.side && whose->index == conn->name.index &&
           whose->life == conn->name.life && armed->fault.to_weir == to_weir;
}

static bool stops(const struct armed *armed)
{
    return armed->fault.wait_ns == 0 && armed->fault.wait_steps == 0;
}

/*
 * Sets the mark at the next byte of that direction with a fault. Wakes a side that was stopped at
 * the last mark.
 */
static void set_mark(struct conn *conn, bool to_weir)
{
    struct pipe *pipe = pipe_of(conn, to_weir);
    uint64_t before = pipe->mark;
    bool was_stop = pipe->is_stop;
    pipe->mark = UINT64_MAX;
    pipe->is_stop = false;
    for (size_t i = 0; i < links.n; i++) {
        const struct armed *armed = links.all[i];
        bool is_next = armed->state == LINK_AHEAD || (armed->state == LINK_WAITS && stops(armed)) ||
                       (armed->state == LINK_LASTS && armed->fault.kind == LINK_FULL);
        if (!is_next || !is_about(armed, conn, to_weir) || armed->fault.upto >= pipe->mark)
            continue;
        pipe->mark = armed->fault.upto > pipe->moved ? armed->fault.upto : pipe->moved;
        pipe->is_stop = stops(armed) || armed->state == LINK_LASTS;
    }
    if (was_stop && pipe->mark > before)
        conn_stir(conn);
}

static void on_bell(struct bell *bell)
{
    (void)bell; /* links_look does the work */
}

static void wait_until(struct armed *armed, enum armed_state state, uint64_t at_ns)
{
    links.n_active += armed->state != LINK_WAITS && armed->state != LINK_LASTS;
    armed->state = state;
    armed->due_ns = at_ns;
    armed->bell.ring = on_bell;
    world_ring_at(&armed->bell, at_ns > world.now_ns ? at_ns : at_ns + PATIENCE_NS);
}

static void finish(struct armed *armed)
{
    links.n_active -= armed->state == LINK_WAITS || armed->state == LINK_LASTS;
    armed->state = LINK_DONE;
    world_silence(&armed->bell);
}

static void on_marked(struct conn *conn, bool to_weir)
{
    const struct pipe *pipe = pipe_of(conn, to_weir);
    for (size_t i = 0; i < links.n; i++) {
        struct armed *armed = links.all[i];
        if (armed->state != LINK_AHEAD || !is_about(armed, conn, to_weir) ||
            armed->fault.upto > pipe->moved)
            continue;
        armed->conn = conn;
        armed->due_step = pipe->moved_step + armed->fault.wait_steps;
        wait_until(armed, LINK_WAITS, pipe->moved_ns + armed->fault.wait_ns);
    }
    set_mark(conn, to_weir);
}

static void on_named(struct conn *conn)
{
    on_marked(conn, true);
    on_marked(conn, false);
}

static void on_gone(const struct conn *conn)
{
    for (size_t i = 0; i < links.n; i++)
        if (links.all[i]->conn == conn) {
            links.all[i]->conn = NULL;
            finish(links.all[i]);
        }
}

void links_start(void)
{
    static const struct striker striker = {
        .on_named = on_named, .on_marked = on_marked, .on_gone = on_gone};
    kernel.striker = &striker;
}

/* ---- faults ---- */

static void leave(struct conn *conn, bool with_reset)
{
    if (conn->name.side == SIDE_CLIENT)
        client_hang_up(conn->owner, with_reset);
    else if (conn->name.side == SIDE_OPERATOR)
        operator_hang_up();
    else
        server_leave(conn, with_reset);
}

static void halve(struct conn *conn)
{
    if (conn->name.side == SIDE_CLIENT)
        client_shut(conn->owner);
    else
        leave(conn, false);
}

static void tell(const struct armed *armed)
{
    static const char *const sides[] = {"nobody", "client", "lane", "operator"};
    const struct link_fault *fault = &armed->fault;
    char text[120];
    int n = snprintf(text, sizeof text,
                     "%s of %s %u.%u after %" PRIu64 " bytes %s weir, %" PRIu64 " us",
                     names[fault->kind], sides[fault->whose.side], fault->whose.index,
                     fault->whose.life, fault->upto, fault->to_weir ? "to" : "from", fault->us);
    trace_note(TRACE_FAULT, armed->conn->number, text, (size_t)n);
}

static bool is_harmless(const struct link_fault *fault)
{
    bool passes = fault->kind == LINK_LATE || fault->kind == LINK_FULL;
    bool is_clients = fault->whose.side != SIDE_LANE;
    return passes ? fault->us <= SHORT_US : is_clients && fault->kind != LINK_BROKEN;
}

static void note_late(const struct link_fault *fault)
{
    bool passes = fault->kind == LINK_LATE || fault->kind == LINK_FULL;
    if (passes && fault->to_weir && fault->whose.side == SIDE_LANE &&
        fault->us * 1000 > links.latest_ns)
        links.latest_ns = fault->us * 1000;
}

static void strike(struct armed *armed)
{
    static const int errors[] = {ECONNRESET, ETIMEDOUT, EPIPE, ENOBUFS, EHOSTUNREACH, ENOMEM};
    const struct link_fault *fault = &armed->fault;
    struct conn *conn = armed->conn;
    bool to_weir = fault->to_weir;
    if (conn->host_has_closed) {
        finish(armed);
        return;
    }
    tell(armed);
    run.faults++;
    run.is_faultless = run.is_faultless && is_harmless(fault);
    place_upset(fault->us * 1000);
    note_late(fault);
    if (fault->kind == LINK_FULL) {
        wait_until(armed, LINK_LASTS, world.now_ns + fault->us * 1000);
        set_mark(conn, to_weir);
        return;
    }
    finish(armed);
    set_mark(conn, to_weir);
    if (fault->kind == LINK_LATE)
        pipe_hold(pipe_of(conn, to_weir), world.now_ns + fault->us * 1000);
    else if (fault->kind == LINK_BROKEN)
        conn_break(conn, errors[fault->pick % (sizeof errors / sizeof errors[0])]);
    else if (fault->kind == LINK_RESET)
        leave(conn, true);
    else
        halve(conn);
}

static void look_at(struct armed *armed)
{
    if (world.now_ns < armed->due_ns)
        return;
    if (armed->state == LINK_LASTS) {
        finish(armed);
        set_mark(armed->conn, armed->fault.to_weir);
    } else if (world.steps >= armed->due_step || world.now_ns >= armed->due_ns + PATIENCE_NS) {
        strike(armed);
    } else {
        world_ring_at(&armed->bell, armed->due_ns + PATIENCE_NS);
    }
}

void links_look(void)
{
    if (links.n_active == 0)
        return;
    for (size_t i = 0; i < links.n; i++)
        if (links.all[i]->state == LINK_WAITS || links.all[i]->state == LINK_LASTS)
            look_at(links.all[i]);
}

uint64_t links_late_ns(void)
{
    return links.latest_ns;
}

bool links_are_waiting(void)
{
    return links.n_active > 0;
}

void links_end(void)
{
    for (size_t i = 0; i < links.n; i++)
        finish(links.all[i]);
    for (size_t i = 0; i < links.n; i++)
        if (links.all[i]->conn != NULL)
            set_mark(links.all[i]->conn, links.all[i]->fault.to_weir);
}

void links_fini(void)
{
    for (size_t i = 0; i < links.n; i++)
        free(links.all[i]);
    free(links.all);
    links = (struct links){0};
}

/* ---- adding faults ---- */

static struct armed *add(const struct link_fault *fault)
{
    struct armed *armed = mem_zalloc(1, sizeof *armed);
    armed->fault = *fault;
    links.all = mem_realloc(links.all, links.n + 1, sizeof(struct armed *));
    links.all[links.n++] = armed;
    return armed;
}

void links_add(const struct link_fault *fault)
{
    (void)add(fault);
}

static void note(const struct link_fault *fault)
{
    struct line line = {.party = SCENARIO_LINKS,
                        .numbers = {fault->whose.side, fault->whose.index, fault->whose.life,
                                    fault->to_weir, fault->upto, fault->wait_ns, fault->wait_steps,
                                    fault->us, fault->pick}};
    snprintf(line.name, sizeof line.name, "%s", names[fault->kind]);
    scenario_note_line(&line);
}

/* Sets the fault's wait: from the last byte that has moved to the next step. */
static void wait_for_next_step(struct link_fault *fault, struct conn *conn)
{
    const struct pipe *pipe = pipe_of(conn, fault->to_weir);
    fault->wait_ns = world.now_ns - pipe->moved_ns;
    fault->wait_steps = world.steps + 1 - pipe->moved_step;
}

static struct link_fault fault_on(struct conn *conn, bool to_weir, unsigned kind)
{
    return (struct link_fault){.whose = conn->name,
                               .to_weir = to_weir,
                               .upto = pipe_of(conn, to_weir)->moved,
                               .kind = kind};
}

static void strike_now(struct conn *conn, struct link_fault fault)
{
    const struct pipe *pipe = pipe_of(conn, fault.to_weir);
    fault.wait_ns = world.now_ns - pipe->moved_ns;
    fault.wait_steps = world.steps - pipe->moved_step;
    note(&fault);
    struct armed *armed = add(&fault);
    armed->conn = conn;
    wait_until(armed, LINK_WAITS, world.now_ns);
    strike(armed);
}

void links_strike_now(struct conn *conn, bool to_weir, const char *kind, uint64_t us, uint64_t pick)
{
    struct link_fault fault = fault_on(conn, to_weir, 0);
    if (!link_kind_named(kind, &fault.kind))
        abort();
    fault.us = us;
    fault.pick = pick;
    strike_now(conn, fault);
}

void links_strike(struct conn *conn, uint64_t us, uint64_t pick)
{
    struct link_fault fault = fault_on(conn, pick % 2 == 0, (unsigned)(pick / 2 % LINK_KINDS));
    uint64_t ahead = pick / 32 % AHEAD_MAX >> pick / 1024 % 16;
    fault.pick = pick / 65536;
    fault.us = us;
    fault.upto += ahead;
    if (ahead == 0)
        wait_for_next_step(&fault, conn);
    note(&fault);
    links_add(&fault);
    on_marked(conn, fault.to_weir);
}
