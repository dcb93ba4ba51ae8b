/* The role that a server reports in its answer to HELLO. */
#ifndef WEIR_UPSTREAM_NODE_ROLE_H
#define WEIR_UPSTREAM_NODE_ROLE_H

enum node_role {
    ROLE_UNKNOWN, /* no answer yet */
    ROLE_MASTER,
    ROLE_REPLICA,
};

#endif
