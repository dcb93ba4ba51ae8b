/* The command line. */
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/process.h"
#include "net/tls_context.h"
#include "run/commands/explain.h"
#include "run/config/config_build.h"
#include "run/config/config_dump.h"
#include "run/config/config_file.h"
#include "run/config/config_keys.h"
#include "run/config/config_lint.h"
#include "run/proxy.h"
#include "run/succession.h"
#include "upstream/control.h"

struct options {
    const char *file;
    bool is_test, is_strict, is_dump;
    const char *explain; /* the argument of --explain: a subject; NULL: not given */
    char **words;        /* the command to be explained */
    int n_words;
};

static void print_version(void)
{
    printf("weir %s (libuv %s, hiredis %s, inih %s, OpenSSL %s)\n", WEIR_VERSION,
           uv_version_string(), control_reader_version(), INIH_VERSION, tls_version());
}

static void print_help(void)
{
    fputs(
        "weir is a proxy in front of Redis that limits its clients.\n"
        "\n"
        "usage: weir [-c FILE] [-t [--strict]]\n"
        "       weir [-c FILE] --dump\n"
        "       weir [-c FILE] -t --explain SUBJECT COMMAND [ARGUMENT ...]\n"
        "\n"
        "  -c FILE     read the configuration from FILE; without -c weir listens on 127.0.0.1:6380,\n"
        "              forwards to 127.0.0.1:6379 and limits nothing\n"
        "  -t          check the configuration, print every error and warning, and exit: 0 if it is valid, 1 if not\n"
        "  --strict    with -t: a warning is an error\n"
        "  --explain SUBJECT COMMAND [ARGUMENT ...]\n"
        "              with -t: print whether this command would pass for a new client of user:NAME, ip:ADDRESS\n"
        "              or both (user:NAME,ip:ADDRESS); exit 0 if it passes, 3 if it does not\n"
        "  --dump      print the whole configuration as weir reads it, with defaults and included files\n"
        "  --keys      print the keys of the sections [weir] and [admin], with meanings and defaults\n"
        "  --version   print the versions of weir and of the libraries it uses\n"
        "  --help      print this\n"
        "\n"
        "SIGHUP reloads FILE; if FILE has an error, weir keeps the running configuration.\n"
        "SIGUSR1 reopens the log file, for log rotation.\n"
        "SIGUSR2 starts a new process, which takes over without a refused connection; then this process stops.\n"
        "SIGTERM drains clients, then stops weir; a second SIGTERM, or SIGINT, stops weir at once.\n"
        "Exit status: 0 stopped; 1 an error in the options or the configuration; 2 weir could not start or go on for\n"
        "another reason.\n",
        stdout);
}

__attribute__((noreturn)) static void refuse(const char *what, const char *why)
{
    fprintf(stderr, "weir: %s%s\ntry: weir --help\n", what, why);
    exit(EXIT_CONFIG);
}

/* Exits if options exclude each other, or if one lacks another. */
static void check(const struct options *options)
{
    if (options->is_strict && !options->is_test)
        refuse("--strict", " needs -t");
    if (options->explain != NULL && !options->is_test)
        refuse("--explain", " needs -t before it: all words after SUBJECT are the command");
    if (options->explain != NULL && options->n_words == 0)
        refuse("--explain", " needs a command: --explain user:ann GET key");
    if (options->is_dump && options->is_test)
        refuse("--dump", " and -t exclude each other");
    if (options->explain == NULL && options->n_words > 0)
        refuse(options->words[0], " is not an option: name the configuration with -c FILE");
}

/* Parses the command line. Exits after options that only print, and for bad options. */
static struct options main_parse(int argc, char **argv)
{
    static const struct option names[] = {{"version", no_argument, NULL, 'v'},
                                          {"keys", no_argument, NULL, 'k'},
                                          {"strict", no_argument, NULL, 's'},
                                          {"dump", no_argument, NULL, 'd'},
                                          {"explain", required_argument, NULL, 'e'},
                                          {"help", no_argument, NULL, 'h'},
                                          {NULL, 0, NULL, 0}};
    struct options options = {0};
    int option;
    while ((option = getopt_long(argc, argv, "+c:th", names, NULL)) != -1) {
        switch (option) {
        case 'c':
            options.file = optarg;
            break;
        case 't':
            options.is_test = true;
            break;
        case 'd':
            options.is_dump = true;
            break;
        case 'e':
            options.explain = optarg;
            break;
        case 's':
            options.is_strict = true;
            break;
        case 'v':
            print_version();
            exit(0);
        case 'k':
            config_help_print(stdout);
            exit(0);
        case 'h':
            print_help();
            exit(0);
        default:
            fputs("try: weir --help\n", stderr);
            exit(EXIT_CONFIG);
        }
    }
    options.words = argv + optind;
    options.n_words = argc - optind;
    check(&options);
    return options;
}

static void main_report(void *arg, bool is_error, const char *line)
{
    (void)arg;
    fprintf(stderr, "%s%s\n", is_error ? "" : "warning: ", line);
}

struct findings {
    bool is_strict;
    unsigned n_warnings;
};

static void report_finding(void *arg, bool is_error, const char *line)
{
    struct findings *findings = arg;
    findings->n_warnings += !is_error;
    main_report(NULL, is_error || findings->is_strict, line);
}

/* Carries out --explain. Returns the exit status. */
static int main_tell(const struct options *options, const struct config *config,
                     const struct command_table *table)
{
    char why[CONFIG_WHY_ROOM];
    size_t n = (size_t)options->n_words;
    struct slice *words = mem_zalloc(n, sizeof *words);
    for (size_t i = 0; i < n; i++)
        words[i] = slice_str(options->words[i]);
    enum explained result =
        explain(config, table, slice_str(options->explain), words, n, stdout, why, sizeof why);
    free(words);
    if (why[0] != '\0')
        fprintf(stderr, "weir: %s\n", why);
    if (result != EXPLAINED_NOT && why[0] != '\0' && options->is_strict)
        return EXIT_CONFIG; /* the result for an unknown command proves nothing */
    return result == EXPLAINED_PASSES    ? 0
           : result == EXPLAINED_STOPPED ? EXIT_EXPLAINED
                                         : EXIT_CONFIG;
}

static int test(const struct options *options, struct command_table *builtin)
{
    struct findings findings = {.is_strict = options->is_strict};
    struct config_file file = {.path = options->file, .report = report_finding, .arg = &findings};
    struct config *config = config_read(&file, builtin);
    if (config != NULL)
        config_lint(config, &file);
    int status =
        config == NULL || (findings.is_strict && findings.n_warnings > 0) ? EXIT_CONFIG : 0;
    if (status == 0 && options->explain != NULL)
        status = main_tell(options, config, builtin);
    else if (status == 0)
        printf("%s is valid\n", options->file != NULL ? options->file : "the default");
    config_free(config);
    config_file_fini(&file);
    return status;
}

static int dump(const struct options *options, struct command_table *builtin)
{
    struct config_file file = {.path = options->file, .report = main_report};
    struct config *config = config_read(&file, builtin);
    int status = config != NULL ? 0 : EXIT_CONFIG;
    if (config != NULL)
        config_dump(config, &file, stdout);
    config_free(config);
    config_file_fini(&file);
    return status;
}

static bool open_log(const struct config *config)
{
    log_set_format(config->log_format);
    log_set_level(config->log_level);
    const char *why = log_open(config->log_path, config->log_to_stderr);
    if (why != NULL)
        log_error("cannot open the log file %s: %s",
                  config->log_path != NULL ? config->log_path : "on stderr", why);
    return why == NULL;
}

/* Messages about the configuration, kept until the log is open. */
struct remarks {
    struct remark {
        bool is_error;
        char *line;
    } * at;
    size_t n;
};

static void note_remark(void *arg, bool is_error, const char *line)
{
    struct remarks *remarks = arg;
    remarks->at = mem_realloc(remarks->at, remarks->n + 1, sizeof *remarks->at);
    remarks->at[remarks->n++] = (struct remark){is_error, mem_strdup(line)};
}

/* Writes the messages to the log, or as text to stderr if there is no log. Empties the list. */
static void tell_remarks(struct remarks *remarks, bool has_log)
{
    for (size_t i = 0; i < remarks->n; i++) {
        struct remark *remark = &remarks->at[i];
        if (has_log)
            log_line(remark->is_error ? LOG_ERROR : LOG_WARN, "%s", remark->line);
        else
            main_report(NULL, remark->is_error, remark->line);
        free(remark->line);
    }
    free(remarks->at);
    *remarks = (struct remarks){0};
}

static int main_run(const struct options *options, struct command_table *builtin,
                    const struct program *program)
{
    struct remarks remarks = {0};
    struct config_file file = {.path = options->file, .report = note_remark, .arg = &remarks};
    signals_keep(); /* a signal that comes while the file is read is handled later */
    succession_tell_reasons();
    struct config *config = config_read(&file, builtin);
    int status = config != NULL ? EXIT_SYSTEM : EXIT_CONFIG;
    if (config != NULL && open_log(config)) {
        tell_remarks(&remarks, true);
        if (config->is_default)
            log_info(
                "no configuration file (-c FILE): forwarding 127.0.0.1:6380 to 127.0.0.1:6379, no limits");
        status = proxy_run(config, &file, builtin, program);
        log_close();
    }
    tell_remarks(&remarks, succession_tells_reasons());
    config_file_fini(&file);
    config_free(config);
    return status;
}

int main(int argc, char **argv)
{
    char path[PATH_MAX];
    /* read now: the file may be replaced later */
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);
    path[len < 0 ? 0 : len] = '\0';
    const struct program program = {len > 0 ? path : argv[0], argv};
    struct options options = main_parse(argc, argv);
    struct command_table *builtin = command_table_builtin();
    int status = options.is_test   ? test(&options, builtin)
                 : options.is_dump ? dump(&options, builtin)
                                   : main_run(&options, builtin, &program);
    command_table_put(builtin);
    return status;
}
