/* SPDX-License-Identifier: MIT */
#pragma once

#include "errand-box-plugin.h"

/* What the checks share: the settings they were given, and the container daemon's API through the host. */

G_BEGIN_DECLS

/** dc_setting: (transfer full): string @key of @settings, @fallback (nullable) when absent or empty. */
char *dc_setting(EbConfigSection *settings, const char *key, const char *fallback);

/** dc_account: (transfer full): name of the service account. */
char *dc_account(EbConfigSection *settings);
/** dc_account_ids: FALSE when the account does not exist. */
gboolean dc_account_ids(EbHost *host, EbConfigSection *settings, guint *uid, guint *gid);

/** dc_daemon_dir: (transfer full): the directory of the container daemon. */
char *dc_daemon_dir(EbConfigSection *settings);
/** dc_socket: (transfer full): the socket to ask: the configured one, else the one the doctor found for this user. */
char *dc_socket(EbConfigSection *settings);
/** dc_project: (transfer full) (nullable): the configured project, else user-<uid> of the account. */
char *dc_project(EbHost *host, EbConfigSection *settings);
/** dc_pool: (transfer full): the configured pool, else the one that setup makes. */
char *dc_pool(EbConfigSection *settings);

/** DC_CALL_MS: deadline of one question to the daemon: it answers in milliseconds, or is wedged. */
#define DC_CALL_MS 2500

/**
 * dc_contact: to be called before any connection to dc_socket(). The first connection of an account to incus-user makes it
 * set that account up, and a second one at the same time spoils the certificate for good: so one question is asked and
 * answered before all checks go on together.
 *
 * Returns: FALSE with EB_ERROR_TIMEOUT when that one was not answered: nobody needs to try again
 */
gboolean dc_contact(EbHost *host, EbConfigSection *settings, GError **error);

/**
 * dc_get: metadata of GET @request.
 * @skip: (out): set when NULL is returned: a result of its own when @missing (nullable) says what a 404 means, else
 *   "skipped", since another check says that the daemon does not answer
 *
 * Returns: (transfer full) (nullable): an object
 */
JsonObject *dc_get(EbHost *host, EbConfigSection *settings, const char *request, const char *missing,
                   EbCheckResult **skip);
/** dc_request: (transfer full): @format has one %s, replaced by @name escaped for a URL; @project: (nullable) */
char *dc_request(const char *format, const char *name, const char *project);

/**
 * dc_get_guests: (transfer full) (nullable): the answer to GET /1.0/instances of the project; its "metadata" is a list.
 * @skip: (out): set when NULL is returned
 */
JsonNode *dc_get_guests(EbHost *host, EbConfigSection *settings, EbCheckResult **skip);
/** dc_has_device: has @guest a device of @type, its own or by a profile? */
gboolean dc_has_device(JsonObject *guest, const char *type);
/** dc_is_below: is @path the directory @top or below it? By their text alone. */
gboolean dc_is_below(const char *path, const char *top);
/** dc_range_holds: does @text, in the form of subuid(5), give @owner all of @start to @start + @count - 1 in one line? */
gboolean dc_range_holds(const char *text, const char *owner, guint64 start, guint64 count);

/** dc_read_number: first number in file @path. */
gboolean dc_read_number(EbHost *host, const char *path, guint64 *value);

/** DcVersion: "6.0.4" as numbers. */
typedef struct {
    guint major, minor, patch;
} DcVersion;
/** dc_parse_version: reads up to three numbers; what is missing is 0. */
gboolean dc_parse_version(const char *text, DcVersion *version);
/** dc_version_less: is @version below @major.@minor.@patch? */
gboolean dc_version_less(const DcVersion *version, guint major, guint minor, guint patch);
/** dc_package_version: (transfer full) (nullable): of a Debian package that is installed. */
char *dc_package_version(EbHost *host, const char *package);
/** dc_package_less: is Debian package version @a below @b, by dpkg's own rules? */
gboolean dc_package_less(EbHost *host, const char *a, const char *b);
/** dc_kernel: version of the host's kernel. */
gboolean dc_kernel(EbHost *host, DcVersion *version);

G_END_DECLS
