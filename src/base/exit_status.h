/*
 * Exit statuses of the process, as docs/operations.md has them. A service manager starts weir again after each of
 * them but EXIT_CONFIG: a mistake of the configuration does not mend itself.
 */
#ifndef WEIR_BASE_EXIT_STATUS_H
#define WEIR_BASE_EXIT_STATUS_H

#define EXIT_CONFIG 1 /* a mistake of the command line, of the configuration, or of the sockets that systemd holds */
#define EXIT_SYSTEM 2 /* all else: an address in use, a log that cannot be opened, no memory, descriptors or threads */
#define EXIT_EXPLAINED 3 /* --explain: the command does not pass */

#endif
