/* SPDX-License-Identifier: MIT */
#include "incus-error.h"

/* Longest part of incusd's text that is shown. */
#define MAX_TEXT 600

typedef struct {
    const char *fragment; /* lower case, of the error text */
    EbErrorCode code;
    const char *reason;
    gboolean retry;
    const char *advice; /* (nullable) */
} ErrorRule;

/* First match wins: what is specific stands above what is general. */
static const ErrorRule rules[] = {
    {"is busy running", EB_ERROR_BUSY, "incus.busy", TRUE, NULL},
    {"failed shutting down", EB_ERROR_TIMEOUT, "incus.stop-timeout", FALSE, NULL},
    {"instance is running", EB_ERROR_BUSY, "incus.running", TRUE, NULL},
    {"already running", EB_ERROR_EXISTS, "incus.already-running", FALSE, NULL},
    {"already stopped", EB_ERROR_NOT_FOUND, "incus.already-stopped", FALSE, NULL},
    {"instance is not running", EB_ERROR_FAILED, "incus.not-running", FALSE, NULL},
    {"instance is frozen", EB_ERROR_FAILED, "incus.frozen", FALSE, NULL},
    {"unique constraint failed", EB_ERROR_EXISTS, "incus.exists", FALSE, NULL},
    {"already exists", EB_ERROR_EXISTS, "incus.exists", FALSE, NULL},
    {"image not provided for instance creation", EB_ERROR_NOT_FOUND, "incus.image-missing", FALSE, NULL},
    {"image not found", EB_ERROR_NOT_FOUND, "incus.image-missing", FALSE, NULL},
    {"image alias not found", EB_ERROR_NOT_FOUND, "incus.image-missing", FALSE, NULL},
    {"no root device could be found", EB_ERROR_CONFIG, "incus.no-pool", FALSE, "set [plugin.incus] pool"},
    {"storage pool not found", EB_ERROR_NOT_FOUND, "incus.pool-missing", FALSE, "set [plugin.incus] pool"},
    {"project not found", EB_ERROR_NOT_FOUND, "incus.project-missing", FALSE, "run: errand-box setup"},
    {"not enough uid/gid available", EB_ERROR_QUOTA, "incus.id-range", FALSE,
     "give root a larger range in /etc/subuid and /etc/subgid and restart incusd"},
    {"functional idmap setup", EB_ERROR_CONFIG, "incus.id-range", FALSE,
     "add a range for root to /etc/subuid and /etc/subgid and restart incusd"},
    {"newuidmap", EB_ERROR_CONFIG, "incus.id-map", FALSE, "allow root the account's uid in /etc/subuid"},
    {"newgidmap", EB_ERROR_CONFIG, "incus.id-map", FALSE, "allow root the account's gid in /etc/subgid"},
    {"no space left on device", EB_ERROR_QUOTA, "incus.pool-full", FALSE, "free or grow the storage pool"},
    {"disk quota exceeded", EB_ERROR_QUOTA, "incus.disk-quota", FALSE, NULL},
    {"missing source path", EB_ERROR_NOT_FOUND, "incus.source-missing", FALSE, NULL},
    {"resolves outside of restricted parent", EB_ERROR_DENIED, "incus.source-outside", FALSE, NULL},
    {"creation allowed", EB_ERROR_DENIED, "incus.restricted", FALSE, NULL},
    {"update allowed", EB_ERROR_DENIED, "incus.restricted", FALSE, NULL},
    {"certificate is restricted", EB_ERROR_DENIED, "incus.restricted", FALSE, NULL},
    {"does not have permission", EB_ERROR_DENIED, "incus.restricted", FALSE, NULL},
    {"not authorized", EB_ERROR_DENIED, "incus.untrusted", FALSE, "add this account's certificate to incusd"},
    {"failed to retrieve pid", EB_ERROR_QUOTA, "incus.exec-no-pid", TRUE, "the guest may be at its process limit"},
    {"command not found", EB_ERROR_NOT_FOUND, "incus.command-not-found", FALSE, NULL},
    {"command not executable", EB_ERROR_DENIED, "incus.command-not-executable", FALSE, NULL},
    {"isn't ready yet", EB_ERROR_UNAVAILABLE, "incus.not-ready", TRUE, NULL},
    {"is shutting down", EB_ERROR_UNAVAILABLE, "incus.not-ready", TRUE, NULL},
    {"database is locked", EB_ERROR_BUSY, "incus.busy", TRUE, NULL},
    {"missing event connection", EB_ERROR_UNAVAILABLE, "incus.member-lost", TRUE, NULL},
    {"no available cowsql leader", EB_ERROR_UNAVAILABLE, "incus.no-quorum", TRUE, NULL},
    {"context deadline exceeded", EB_ERROR_TIMEOUT, "incus.timeout", TRUE, NULL},
    {"operation not found", EB_ERROR_NOT_FOUND, "incus.operation-gone", FALSE, NULL},
    {"volume not found", EB_ERROR_NOT_FOUND, "incus.volume-missing", FALSE, NULL},
    {"instance not found", EB_ERROR_NOT_FOUND, "incus.not-found", FALSE, NULL},
};

static void
classify_code(int code, EbErrorCode *kind, const char **reason, gboolean *retry)
{
    *retry = FALSE;
    switch (code) {
    case 400:
        *kind = EB_ERROR_INVALID;
        *reason = "incus.bad-request";
        break;
    case 401:
        *kind = EB_ERROR_UNAUTHENTICATED;
        *reason = "incus.untrusted";
        break;
    case 403:
        *kind = EB_ERROR_DENIED;
        *reason = "incus.denied";
        break;
    case 404:
        *kind = EB_ERROR_NOT_FOUND;
        *reason = "incus.not-found";
        break;
    case 409:
        *kind = EB_ERROR_EXISTS;
        *reason = "incus.exists";
        break;
    case 412:
        *kind = EB_ERROR_BUSY;
        *reason = "incus.changed";
        *retry = TRUE;
        break;
    case 503:
        *kind = EB_ERROR_UNAVAILABLE;
        *reason = "incus.not-ready";
        *retry = TRUE;
        break;
    default:
        *kind = EB_ERROR_FAILED;
        *reason = "incus.failed";
        break;
    }
}

GError *
incus_error_new(int code, const char *text)
{
    g_autofree char *shown = eb_log_escape(text != NULL ? text : "no reason given", -1, MAX_TEXT);
    g_autofree char *lower = g_ascii_strdown(shown, -1);

    for (gsize i = 0; i < G_N_ELEMENTS(rules); i++) {
        if (strstr(lower, rules[i].fragment) == NULL)
            continue;
        GError *error = rules[i].advice != NULL
                            ? eb_error_new(rules[i].code, rules[i].reason, "%s (%s)", shown, rules[i].advice)
                            : eb_error_new(rules[i].code, rules[i].reason, "%s", shown);
        if (rules[i].retry)
            eb_error_set_retry(error, 200);
        return error;
    }
    EbErrorCode kind;
    const char *reason;
    gboolean retry;
    classify_code(code, &kind, &reason, &retry);
    GError *error = eb_error_new(kind, reason, "%s", shown);
    if (retry)
        eb_error_set_retry(error, 1000);
    return error;
}

gboolean
incus_error_has_reason(const GError *error, const char *reason)
{
    return error != NULL && error->domain == EB_ERROR && g_strcmp0(eb_error_get_reason(error), reason) == 0;
}
