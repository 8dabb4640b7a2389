/* SPDX-License-Identifier: MIT */
/*
 * maint backup and restore. The file is the operator's, who may be root; the state is the account's. So the command opens
 * the file and runs itself once more as `maint backup -` or `maint restore -`, which becomes the account and knows the
 * file as its standard output or input alone: root never reads what is in a backup, the account never sees where it is.
 */
#include "core/base/eb-account.h"
#include "core/cli/eb-cli-again.h"
#include "core/cli/eb-cli-call.h"
#include "core/cli/eb-cli-maint.h"
#include "core/config/eb-config-file.h"
#include "core/control/eb-control.h"
#include "core/session/eb-dead-roots.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-manager.h"
#include "core/state/eb-archive.h"
#include "core/state/eb-backup.h"
#include "core/state/eb-restore.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#define CONFIG_FILE "/etc/errand-box/errand-box.toml"

static JsonNode *
summary(const EbArchiveManifest *manifest, guint left_out, const char *aside)
{
    JsonObject *object = json_object_new();
    guint64 bytes = 0;

    for (guint i = 0; i < manifest->files->len; i++)
        bytes += ((const EbArchiveFile *)manifest->files->pdata[i])->size;
    json_object_set_int_member(object, "schema", 1);
    json_object_set_string_member(object, "version", manifest->version);
    json_object_set_int_member(object, "database_schema", manifest->schema);
    json_object_set_string_member(object, "created", manifest->created);
    json_object_set_int_member(object, "sessions", manifest->sessions);
    json_object_set_int_member(object, "files", manifest->files->len);
    json_object_set_int_member(object, "bytes", (gint64)bytes);
    json_object_set_int_member(object, "configuration_left_out", left_out);
    if (aside != NULL)
        json_object_set_string_member(object, "replaced", aside);
    return eb_control_object(object);
}

static gboolean
become_account(EbConfig *config, GError **error)
{
    g_autoptr(EbAccount) account = eb_account_find(eb_config_get_account(config), error);

    return account != NULL && eb_account_check_caller(account, error) && eb_account_become(account, error) &&
           eb_account_protect_process(error);
}

/* --- the second process --- */

/* (transfer full): the main file first. */
static char **
config_files(EbCli *cli)
{
    g_autoptr(GStrvBuilder) all = g_strv_builder_new();
    const char *named = eb_cli_get_config_file(cli);

    g_strv_builder_add(all, named != NULL ? named : CONFIG_FILE);
    if (named == NULL) {
        g_autofree char *dir = g_path_get_dirname(CONFIG_FILE);
        g_autofree char *conf_d = g_build_filename(dir, "conf.d", NULL);
        g_auto(GStrv) more = eb_config_file_list(conf_d, NULL);
        if (more != NULL)
            g_strv_builder_addv(all, (const char **)more);
    }
    return g_strv_builder_end(all);
}

static int
backup_to_stdout(EbCli *cli, EbConfig *config)
{
    g_autoptr(GError) error = NULL;
    g_auto(GStrv) files = config_files(cli);
    guint left_out = 0;
    /* Read before root is given up: the files are root's. */
    g_autoptr(GPtrArray) kept = eb_backup_read_config((const char *const *)files, &left_out);

    if (isatty(STDOUT_FILENO))
        return eb_cli_refuse(cli, "maint backup -: standard output is a terminal (name a file)");
    if (!become_account(config, &error))
        return eb_cli_fail(cli, "maint backup", error);
    g_autoptr(EbArchiveManifest) manifest =
        eb_backup_write(eb_config_get_state_dir(config), STDOUT_FILENO, kept, &error);
    if (manifest == NULL)
        return eb_cli_fail(cli, "maint backup", error);
    g_autoptr(JsonNode) node = summary(manifest, left_out, NULL);
    g_autofree char *text = eb_json_write(node, NULL);
    g_printerr("%s\n", text);
    return EB_EXIT_OK;
}

static gboolean
check_tries(const char *state_dir, GError **error)
{
    g_autofree char *path = g_build_filename(state_dir, EB_TRY_DIR, NULL);
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;

    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *root = g_build_filename(path, name, NULL);
        if (!eb_dir_lock_is_held(root, EB_STATE_LOCK_FILE))
            continue;
        eb_set_error(error, EB_ERROR_LOCKED, "restore.try", "a try is running in %s (wait for its end)", root);
        return FALSE;
    }
    return TRUE;
}

static EbArchiveManifest *
restore_locked(EbCli *cli, const char *state_dir, char **aside, GError **error)
{
    if (!check_tries(state_dir, error))
        return NULL;
    if (!eb_restore_settle(state_dir, NULL, error))
        return NULL;
    if (!eb_cli_args_flag(eb_cli_get_args(cli), "replace") && !eb_restore_is_empty(state_dir)) {
        eb_set_error(error, EB_ERROR_CONFIG, "restore.not-empty",
                     "%s holds sessions already, or a database that cannot be read (--replace: put the backup in its "
                     "place and keep what is there aside)",
                     state_dir);
        return NULL;
    }
    return eb_restore_read(state_dir, STDIN_FILENO, aside, error);
}

static int
restore_from_stdin(EbCli *cli, EbConfig *config)
{
    g_autoptr(GError) error = NULL;
    const char *state_dir = eb_config_get_state_dir(config);
    g_autofree char *aside = NULL;
    g_autoptr(EbArchiveManifest) manifest = NULL;

    if (isatty(STDIN_FILENO))
        return eb_cli_refuse(cli, "maint restore -: standard input is a terminal (name a file)");
    EbDirLock *lock = become_account(config, &error) ? eb_dir_lock_take(state_dir, EB_STATE_LOCK_FILE, &error) : NULL;
    if (lock == NULL && g_error_matches(error, EB_ERROR, EB_ERROR_LOCKED))
        g_prefix_error(&error, "the service must not run meanwhile (errand-box down): ");
    if (lock != NULL)
        manifest = restore_locked(cli, state_dir, &aside, &error);
    eb_dir_lock_release(lock);
    if (manifest == NULL)
        return eb_cli_fail(cli, "maint restore", error);
    if (eb_cli_get_json(cli)) {
        eb_cli_print_json(cli, summary(manifest, 0, aside));
        return EB_EXIT_OK;
    }
    eb_cli_print(cli, "restored %" G_GINT64_FORMAT " sessions as of %s, made by version %s\n", manifest->sessions,
                 manifest->created, manifest->version);
    if (aside != NULL)
        eb_cli_print(cli, "what was there before is in %s/%s\n", state_dir, aside);
    eb_cli_print(
        cli,
        "the configuration of that time, if it was kept, is in %s/restored-etc: compare it with yours\n"
        "not restored: credentials (errand-box creds import FILE), projects, and what agents kept in their own "
        "state directories: a session whose agent needs that starts anew\n",
        state_dir);
    return EB_EXIT_OK;
}

/* --- the first process --- */

static int
report_backup(EbCli *cli, const char *file, const char *said, GError **error)
{
    g_autoptr(JsonNode) node = eb_json_parse(said, strlen(said), &EB_JSON_LIMITS_SMALL, error);
    JsonObject *object = eb_json_node_object(node);

    if (object == NULL)
        return EB_EXIT_FAILED;
    if (eb_cli_get_json(cli)) {
        json_object_set_string_member(object, "file", file);
        eb_cli_print_json(cli, g_steal_pointer(&node));
        return EB_EXIT_OK;
    }
    g_autofree char *size = g_format_size_full((guint64)eb_json_get_int(object, "bytes", 0), G_FORMAT_SIZE_IEC_UNITS);
    eb_cli_print(cli, "%s: %" G_GINT64_FORMAT " sessions with what was said in them, and the configuration; %s\n", file,
                 eb_json_get_int(object, "sessions", 0), size);
    if (eb_json_get_int(object, "configuration_left_out", 0) > 0)
        eb_cli_print(cli, "left out: configuration files that are not there or cannot be read\n");
    eb_cli_print(cli,
                 "not in it: credentials, projects (their files are in %s), images, and what agents keep in their "
                 "own state directories\n",
                 eb_config_get_project_root(eb_cli_get_config(cli, NULL)));
    return EB_EXIT_OK;
}

/* An older backup may be replaced, an empty file too; whatever else has that name was not meant. */
static gboolean
check_replaceable(const char *file, GError **error)
{
    char head[sizeof EB_ARCHIVE_MARKER] = "";
    struct stat info;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    gboolean ours = fd < 0 && errno == ENOENT;

    if (fd >= 0) {
        ours = fstat(fd, &info) == 0 && S_ISREG(info.st_mode) &&
               (info.st_size == 0 || (read(fd, head, sizeof head) == (gssize)sizeof head &&
                                      memcmp(head, EB_ARCHIVE_MARKER, sizeof head) == 0));
        close(fd);
    }
    if (!ours && (fd >= 0 || errno == ELOOP))
        eb_set_error(error, EB_ERROR_CONFIG, "backup.file", "%s is there and no backup: name another file", file);
    else if (!ours)
        eb_set_error(error, EB_ERROR_CONFIG, "backup.file", "%s: %s", file, g_strerror(errno));
    return ours;
}

/* Written beside its place and renamed, so that a file of that name is always whole. */
static int
backup_to_file(EbCli *cli, const char *file)
{
    g_autoptr(GError) error = NULL;
    g_autofree char *temp = g_strconcat(file, ".XXXXXX", NULL);
    g_autofree char *said = NULL;

    if (!check_replaceable(file, &error))
        return eb_cli_fail(cli, "maint backup", error);
    int fd = g_mkstemp_full(temp, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
    int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;

    if (copy < 0) {
        eb_set_error(&error, EB_ERROR_DENIED, "backup.file", "%s: %s", file, g_strerror(errno));
        return eb_cli_fail(cli, "maint backup", error);
    }
    const char *const args[] = {"maint", "backup", "-", NULL};
    int code = eb_cli_again(cli, args, EB_CLI_AGAIN_OUTPUT, copy, &said, &error);
    if (code != EB_EXIT_OK && error == NULL)
        fputs(said, stderr);
    if (code == EB_EXIT_OK && (fsync(fd) != 0 || rename(temp, file) != 0)) {
        eb_set_error(&error, EB_ERROR_FAILED, "backup.file", "%s: %s", file, g_strerror(errno));
        code = EB_EXIT_FAILED;
    }
    close(fd);
    if (code != EB_EXIT_OK)
        unlink(temp);
    else
        code = report_backup(cli, file, said, &error);
    return error != NULL ? eb_cli_fail(cli, "maint backup", error) : code;
}

static int
restore_from_file(EbCli *cli, const char *file)
{
    g_autoptr(GError) error = NULL;
    struct stat info;
    int fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

    if (fd < 0 || fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
        eb_set_error(&error, EB_ERROR_CONFIG, "restore.file", "%s: %s", file,
                     fd < 0 ? g_strerror(errno) : "this is no regular file");
        if (fd >= 0)
            close(fd);
        return eb_cli_fail(cli, "maint restore", error);
    }
    gboolean replace = eb_cli_args_flag(eb_cli_get_args(cli), "replace");
    const char *const args[] = {"maint", "restore", "-", replace ? "--replace" : NULL, NULL};
    int code = eb_cli_again(cli, args, EB_CLI_AGAIN_INPUT, fd, NULL, &error);
    return error != NULL ? eb_cli_fail(cli, "maint restore", error) : code;
}

int
eb_cli_maint_backup(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    const char *file = eb_cli_args_operands(eb_cli_get_args(cli))[0];
    EbConfig *config = eb_cli_get_config(cli, &error);

    if (config == NULL)
        return eb_cli_fail(cli, "maint backup", error);
    return strcmp(file, "-") == 0 ? backup_to_stdout(cli, config) : backup_to_file(cli, file);
}

int
eb_cli_maint_restore(EbCli *cli)
{
    g_autoptr(GError) error = NULL;
    const char *file = eb_cli_args_operands(eb_cli_get_args(cli))[0];
    EbConfig *config = eb_cli_get_config(cli, &error);

    if (config == NULL)
        return eb_cli_fail(cli, "maint restore", error);
    return strcmp(file, "-") == 0 ? restore_from_stdin(cli, config) : restore_from_file(cli, file);
}
