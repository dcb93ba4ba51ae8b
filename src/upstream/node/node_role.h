/* What a server says that it is, in its answer to HELLO. */
#ifndef WEIR_UPSTREAM_NODE_ROLE_H
#define WEIR_UPSTREAM_NODE_ROLE_H

enum node_role {
    ROLE_UNKNOWN, /* it has not said */
    ROLE_MASTER,
    ROLE_REPLICA,
};

#endif
