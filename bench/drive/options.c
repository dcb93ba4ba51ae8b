#include "options.h"

#include <arpa/inet.h>
#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static void usage(void)
{
    fprintf(
        stderr,
        "usage: drive [-c CONNECTIONS] [-P PIPELINE | -R RATE] [-s SECONDS] [-w WARM_UP_SECONDS] [-A CLOCK_NS]\n"
        "             [-n REPLIES] [-k KEYS] [-v VALUE_BYTES] [-S SEED] [-b FROM_IP[/N]] [-3] [-T] [-C] [-p PID]...\n"
        "             IP:PORT WORD... [+ WORD...]\n"
        "  \"{k}\" in a word is a random key's number, a word \"{v}\" the value; -R sends RATE requests a second whether or\n"
        "  not they are answered; -A measures from that time of the monotonic clock on; -b with /N: from N addresses in turn,\n"
        "  that one and those after it; -3 speaks RESP3, -T TLS; -C: connect, ask each request once, close, and again;\n"
        "  -p: also measure that process\n");
    exit(2);
}

static struct sockaddr_in address_of(const char *text)
{
    char host[64];
    unsigned port;
    struct sockaddr_in address = {.sin_family = AF_INET};
    if (sscanf(text, "%63[^:]:%u", host, &port) != 2 ||
        inet_pton(AF_INET, host, &address.sin_addr) != 1)
        errx(2, "%s is not IP:PORT", text);
    address.sin_port = htons((uint16_t)port);
    return address;
}

/* Reads IP or IP/N. */
static void read_sources(struct options *options, const char *text)
{
    char host[64];
    options->n_from = 1;
    int n = sscanf(text, "%63[^/]/%u", host, &options->n_from);
    if (n < 1 || inet_pton(AF_INET, host, &options->from) != 1 || options->n_from == 0)
        errx(2, "%s is not an address, or address/number", text);
}

static void read_pid(struct options *options)
{
    if (options->n_pids == PIDS_MAX)
        errx(2, "at most %d processes", PIDS_MAX);
    options->pids[options->n_pids++] = strtol(optarg, NULL, 10);
}

/* Options of the measured window and the measured processes. */
static bool read_option_of_window(struct options *options, int letter)
{
    switch (letter) {
    case 's':
        options->seconds = strtod(optarg, NULL);
        return true;
    case 'w':
        options->warm_up = strtod(optarg, NULL);
        return true;
    case 'A':
        options->begin_ns = strtoull(optarg, NULL, 10);
        return true;
    case 'n':
        options->count = strtoull(optarg, NULL, 10);
        return true;
    case 'p':
        read_pid(options);
        return true;
    default:
        return false;
    }
}

/* Options of the requests. */
static bool read_option_of_recipe(struct recipe *recipe, int letter)
{
    switch (letter) {
    case 'k':
        recipe->keys = (uint32_t)strtoul(optarg, NULL, 10);
        return true;
    case 'v':
        recipe->value_bytes = strtoul(optarg, NULL, 10);
        return true;
    case 'S':
        recipe->seed = strtoull(optarg, NULL, 10);
        return true;
    default:
        return false;
    }
}

/* Options of the connections. */
static void read_option(struct options *options, int letter)
{
    switch (letter) {
    case 'c':
        options->conns = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'P':
        options->pipeline = (unsigned)strtoul(optarg, NULL, 10);
        break;
    case 'R':
        options->rate = strtod(optarg, NULL);
        break;
    case 'b':
        read_sources(options, optarg);
        break;
    case '3':
        options->is_resp3 = true;
        break;
    case 'T':
        options->is_tls = true;
        break;
    case 'C':
        options->is_churn = true;
        break;
    default:
        usage();
    }
}

struct options options_read(int argc, char **argv)
{
    struct options options = {.conns = 1,
                              .pipeline = 1,
                              .seconds = 1,
                              .warm_up = 0.2,
                              .recipe = {.keys = 1000, .value_bytes = 16, .seed = 1}};
    int letter;
    while ((letter = getopt(argc, argv, "+c:P:R:s:w:A:n:k:v:S:b:3TCp:")) != -1)
        if (!read_option_of_window(&options, letter) &&
            !read_option_of_recipe(&options.recipe, letter))
            read_option(&options, letter);
    if (argc - optind < 2 || options.conns == 0 || options.pipeline == 0)
        usage();
    if (options.is_churn && (options.is_tls || options.rate > 0 || options.from.s_addr))
        errx(2, "-C cannot be combined with -T, -R or -b");
    if (options.rate > 0 && (options.pipeline > 1 || options.count > 0))
        errx(2, "-R cannot be combined with -P or -n");
    options.to = address_of(argv[optind]);
    options.recipe.words = argv + optind + 1;
    options.recipe.n_words = argc - optind - 1;
    if (options.is_churn)
        options.pipeline = 1;
    if (options.count > 0)
        options.warm_up = 0;
    options.recipe.per_batch = options.pipeline;
    return options;
}
