/*
 * Other functions of libuv that weir is linked with: error texts, and processes, which the
 * simulated system refuses to start.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

int uv_translate_sys_error(int error)
{
    return error <= 0 ? error : -error;
}

const char *uv_strerror(int error)
{
    switch (error) {
#define WORDS(name, words)                                                                         \
    case UV_##name:                                                                                \
        return words;
        UV_ERRNO_MAP(WORDS)
#undef WORDS
    default:
        return "unknown error";
    }
}

const char *uv_version_string(void)
{
    return "simulated";
}

uv_buf_t uv_buf_init(char *base, unsigned int len)
{
    return (uv_buf_t){.base = base, .len = len};
}

/* A handle that can only be closed. */
static void init_idle(uv_loop_t *loop, uv_handle_t *handle)
{
    uv_idle_t idle;
    uv_idle_init(loop, &idle);
    handle->loop = loop;
    handle->type = UV_UNKNOWN_HANDLE;
    handle->flags = idle.flags;
    handle->next_closing = NULL;
}

int uv_pipe_init(uv_loop_t *loop, uv_pipe_t *pipe, int is_ipc)
{
    (void)is_ipc;
    init_idle(loop, (uv_handle_t *)pipe);
    return 0;
}

int uv_spawn(uv_loop_t *loop, uv_process_t *process, const uv_process_options_t *options)
{
    (void)options;
    init_idle(loop, (uv_handle_t *)process);
    process->pid = 0;
    return UV_EAGAIN;
}

/* No process is ever started, so no process reports anything. */
int uv_fileno(const uv_handle_t *handle, uv_os_fd_t *fd)
{
    (void)handle;
    (void)fd;
    return UV_EBADF;
}

int uv_poll_init(uv_loop_t *loop, uv_poll_t *poll, int fd)
{
    (void)fd;
    init_idle(loop, (uv_handle_t *)poll);
    return 0;
}

int uv_poll_start(uv_poll_t *poll, int events, uv_poll_cb on_events)
{
    (void)poll;
    (void)events;
    (void)on_events;
    return 0;
}

int uv_try_write(uv_stream_t *stream, const uv_buf_t *bufs, unsigned n_bufs)
{
    (void)stream;
    (void)bufs;
    (void)n_bufs;
    return UV_EAGAIN;
}

int uv_poll_stop(uv_poll_t *poll)
{
    (void)poll;
    return 0;
}

int uv_process_kill(uv_process_t *process, int number)
{
    (void)process;
    (void)number;
    return UV_ESRCH;
}

int uv_read_start(uv_stream_t *stream, uv_alloc_cb on_room, uv_read_cb on_read)
{
    (void)stream;
    (void)on_room;
    (void)on_read;
    return UV_ENOTCONN;
}

int uv_read_stop(uv_stream_t *stream)
{
    (void)stream;
    return 0;
}
