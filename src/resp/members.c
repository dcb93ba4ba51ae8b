#include "resp/members.h"

#include "base/num.h"

void members_init(struct members *members)
{
    *members = (struct members){.announced = -1};
}

static void choose(struct members *members, uint32_t at, uint32_t number, bool is_list)
{
    uint32_t place = members->n++ % MEMBERS_KEPT;
    members->at[place] = at;
    members->number[place] = number;
    members->is_list[place] = is_list;
}

void members_choose(struct members *members, uint32_t at, uint32_t number)
{
    choose(members, at, number, false);
}

void members_choose_list(struct members *members, uint32_t at, uint32_t number)
{
    choose(members, at, number, true);
}

/* The header, "*3\r\n", is complete: members follow. */
static void read_header(struct members *members)
{
    const struct glimpse *head = &members->glimpse;
    bool is_array = head->n_head > 3 && head->n_head < GLIMPSE_BYTES && glimpse_type(head) == '*';
    if (!is_array || !num_parse(slice_of(head->head + 1, head->n_head - 3U), &members->announced))
        members->announced = -1;
    members->is_over = members->announced <= 0;
    glimpse_reset(&members->glimpse);
}

static const char *take_header(struct members *members, const char *at, const char *end)
{
    const char *lf = memchr(at, '\n', (size_t)(end - at));
    const char *next = lf != NULL ? lf + 1 : end;
    glimpse_feed(&members->glimpse, at, (size_t)(next - at));
    if (lf != NULL)
        read_header(members);
    return next;
}

static bool is_good(const struct glimpse *member, bool is_list)
{
    char type = glimpse_type(member);
    return is_list ? type == '*' || type == '%' : glimpse_is(member, SLICE("+OK\r\n"));
}

/* A member has been read (pushes in between do not count). */
static void note_member(struct members *members)
{
    uint32_t kept = members->n < MEMBERS_KEPT ? members->n : MEMBERS_KEPT;
    for (uint32_t i = 0; i < kept; i++)
        if (members->at[i] == members->n_passed && is_good(&members->glimpse, members->is_list[i])) {
            members->has_ok = true;
            members->number_of_ok = members->number[i];
        }
    members->n_passed++;
    members->is_over = members->n_passed == members->announced;
}

static const char *take_member(struct members *members, const char *at, const char *end)
{
    size_t used;
    enum scan_result result = reply_scan(&members->scan, at, (size_t)(end - at), &used);
    glimpse_feed(&members->glimpse, at, used);
    members->is_over = result == SCAN_BAD;
    if (result != SCAN_FRAME)
        return at + used;
    if (members->scan.kind != '>')
        note_member(members);
    glimpse_reset(&members->glimpse);
    return at + used;
}

void members_feed(struct members *members, const char *data, size_t n)
{
    const char *end = data + n;
    while (data < end && !members->is_over)
        data = members->announced < 0 ? take_header(members, data, end) : take_member(members, data, end);
}

enum members_answer members_last_ok(const struct members *members, uint32_t n, uint32_t *number)
{
    *number = members->number_of_ok;
    if (members->announced != n || members->n_passed != n)
        return MEMBERS_UNKNOWN;
    if (members->has_ok)
        return MEMBERS_ONE;
    return members->n > MEMBERS_KEPT ? MEMBERS_UNKNOWN : MEMBERS_NONE;
}
