#include "upstream/window.h"

void window_note(struct send_window *window, uint64_t took_ns, uint64_t now_ns)
{
    uint64_t most = 2 * window_base_ns(window) + WINDOW_BASE_NS; /* one that came late is no long way yet */
    uint64_t took = took_ns < most ? took_ns : most;
    took = took > 0 ? took : 1;
    if (now_ns - window->epoch_ns >= WINDOW_EPOCH_NS) {
        bool is_next = now_ns - window->epoch_ns < 2 * WINDOW_EPOCH_NS;
        window->least_ns[1] = is_next ? window->least_ns[0] : 0;
        window->least_ns[0] = 0;
        window->epoch_ns = now_ns;
    }
    if (window->least_ns[0] == 0 || took < window->least_ns[0])
        window->least_ns[0] = took;
    window->measured_ns = now_ns;
}

uint64_t window_base_ns(const struct send_window *window)
{
    uint64_t now = window->least_ns[0];
    uint64_t before = window->least_ns[1];
    if (now == 0 && before == 0)
        return WINDOW_BASE_NS;
    if (now == 0 || before == 0)
        return now + before;
    return now < before ? now : before;
}
