/* SPDX-License-Identifier: MIT */
#pragma once

#include "core/broker/eb-address.h"
#include "errand-box-plugin.h"

G_BEGIN_DECLS

/** EB_HOST_MAX: longest host name in bytes, as in the DNS. */
#define EB_HOST_MAX 253
/** EB_POLICY_MAX_RULES: most allowed hosts of one session. */
#define EB_POLICY_MAX_RULES 4096
/** EB_POLICY_MAX_PORTS: most allowed ports of one session. */
#define EB_POLICY_MAX_PORTS 64

/** EbTarget: where a request wants to go, in one normal form: lower case, no trailing dot, literals canonical. */
typedef struct {
    char host[EB_HOST_MAX + 3]; /* an IPv6 literal stands without brackets */
    guint16 port;
    gboolean literal;
    EbAddress address; /* when literal */
} EbTarget;

/**
 * eb_target_parse:
 * @text: "host", "host:port", "[v6]:port"; need not be NUL-terminated
 * @default_port: used when there is none; 0 = a port must be given
 * @why: (out) (transfer none): what is wrong, lower case
 *
 * Refused: user info, paths, zone ids, empty labels, port 0, numbers that a resolver would take for an address
 * ("127.1", "0x7f000001", "2130706433"), and bytes beyond ASCII: clients send names in punycode, and mapping what they do
 * not map would give one host many names.
 */
gboolean eb_target_parse(const char *text, gsize length, guint16 default_port, EbTarget *target, const char **why);
/** eb_target_is_own: TRUE for the broker's own address as a guest sees it: loopback at @relay_port. */
gboolean eb_target_is_own(const EbTarget *target, guint16 relay_port);
/** eb_target_format: (transfer full): "host:port" or "[v6]:port" */
char *eb_target_format(const EbTarget *target);

/** EbVerdict: what the policy says to one target. */
typedef enum {
    EB_VERDICT_ALLOWED = 0,
    EB_VERDICT_HOST,     /* not on the list */
    EB_VERDICT_PORT,     /* host is, port is not */
    EB_VERDICT_INTERNAL, /* an internal address */
    EB_VERDICT_CLOSED,   /* this session reaches providers only */
} EbVerdict;

/** EbPolicy: the egress rules of one session, compiled; immutable. */
typedef struct _EbPolicy EbPolicy;

/**
 * eb_policy_new: (transfer full) (nullable)
 * @proxy: FALSE = nothing is allowed
 * @allow: (nullable): hosts and "*.domain", international names as people write them or in punycode; a malformed one is
 *   an error
 */
EbPolicy *eb_policy_new(gboolean proxy, const char *const *allow, const guint16 *ports, guint n_ports,
                        gboolean allow_internal, GError **error);
EbPolicy *eb_policy_ref(EbPolicy *self);
void eb_policy_unref(EbPolicy *self);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(EbPolicy, eb_policy_unref)

/** eb_policy_judge: before anything is resolved. @rule: (out) (transfer none) (nullable): the rule that allowed it */
EbVerdict eb_policy_judge(EbPolicy *self, const EbTarget *target, const char **rule);
/** eb_policy_judge_address: what @target resolved to: TRUE when it may be dialled. A name never reaches inside. */
gboolean eb_policy_judge_address(EbPolicy *self, const EbTarget *target, const EbAddress *address);

G_END_DECLS
