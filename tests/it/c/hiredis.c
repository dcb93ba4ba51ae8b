/* An application with hiredis: hiredis PORT busy|idle. Reconnects after a lost connection. */
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int port;
static redisContext *redis;

/* Returns the reply, or NULL after an error, which it prints. The caller frees the reply. */
static redisReply *attempt(const char *command)
{
    if (!redis)
        redis = redisConnect("127.0.0.1", port);
    redisReply *reply = redis && !redis->err ? redisCommand(redis, command) : NULL;
    if (!reply) {
        printf("error Connection lost: %s\n", redis ? redis->errstr : "no memory");
        redisFree(redis);
        redis = NULL;
        usleep(20000);
    } else if (reply->type == REDIS_REPLY_ERROR) {
        printf("error %s\n", reply->str);
        freeReplyObject(reply);
        reply = NULL;
        usleep(20000);
    }
    return reply;
}

static void busy(void)
{
    long long last = 0;
    for (redisReply *stop = NULL; !stop || stop->type == REDIS_REPLY_NIL; usleep(5000)) {
        redisReply *reply = attempt("INCR n");
        if (reply && reply->integer > last)
            puts("ok");
        else if (reply)
            printf("%lld after %lld\n", reply->integer, last);
        last = reply ? reply->integer : last;
        freeReplyObject(reply);
        freeReplyObject(stop);
        stop = attempt("GET stop");
    }
}

static void idle(void)
{
    for (int is_last = 0; !is_last;) {
        redisReply *reply = attempt("BLPOP q 0");
        if (!reply)
            continue;
        printf("popped %s\n", reply->element[1]->str);
        is_last = strcmp(reply->element[1]->str, "end") == 0;
        freeReplyObject(reply);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    setvbuf(stdout, NULL, _IOLBF, 0);
    port = atoi(argv[1]);
    strcmp(argv[2], "busy") == 0 ? busy() : idle();
    redisFree(redis);
    return 0;
}
