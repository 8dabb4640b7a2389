/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-settings-text.h"
#include "core/provision/eb-setup-invite.h"
#include "core/provision/eb-setup-private.h"

/* What an operator hands over, or what is stored: bounded, wiped when freed. */
typedef struct {
    char *text;
    gsize length;
} Content;

static void
content_clear(Content *content)
{
    if (content->text != NULL)
        explicit_bzero(content->text, content->length);
    g_clear_pointer(&content->text, g_free);
    content->length = 0;
}
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(Content, content_clear)

/* Reads a regular file through no symbolic link. @info: (out): of the descriptor that was read. */
static gboolean
read_content(const char *path, Content *content, struct stat *info, GError **error)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    gboolean ok = fd >= 0 && fstat(fd, info) == 0;
    gsize size;

    if (ok && (!S_ISREG(info->st_mode) || info->st_size > EB_ENV_FILE_MAX_BYTES)) {
        errno = S_ISREG(info->st_mode) ? EFBIG : EINVAL;
        ok = FALSE;
    }
    if (ok) {
        size = (gsize)info->st_size;
        content->text = g_malloc0(size + 1);
        while (content->length < size) {
            gssize n = read(fd, content->text + content->length, size - content->length);
            if (n < 0 && errno == EINTR)
                continue;
            if (n <= 0)
                break;
            content->length += (gsize)n;
        }
    }
    if (!ok)
        eb_set_error(error, errno == ENOENT ? EB_ERROR_NOT_FOUND : EB_ERROR_CONFIG, "provision.file", "%s: %s", path,
                     errno == ELOOP    ? "is a symbolic link: name the file itself"
                     : errno == EINVAL ? "is not a regular file"
                     : errno == EFBIG  ? "is longer than 1 MiB, which no such file is"
                                       : g_strerror(errno));
    if (fd >= 0)
        close(fd);
    return ok;
}

/* Replaces @path as a whole. Its directory may belong to an account that is not trusted with other files, so nothing
 * there is followed. */
static gboolean
write_content(const char *path, const Content *content, mode_t mode, uid_t uid, gid_t gid, GError **error)
{
    g_autofree char *directory = g_path_get_dirname(path);
    g_autofree char *name = g_path_get_basename(path);
    g_autofree char *temporary = g_strdup_printf(".%s.%d", name, (int)getpid());
    int dir = eb_setup_open_directory(directory, error);
    if (dir < 0)
        return FALSE;
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    gboolean ok = fd >= 0 && write(fd, content->text, content->length) == (gssize)content->length &&
                  fchown(fd, uid, gid) == 0 && fchmod(fd, mode) == 0 && fsync(fd) == 0 &&
                  renameat(dir, temporary, dir, name) == 0;

    if (!ok) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.file", "%s: %s", path, g_strerror(errno));
        if (fd >= 0)
            unlinkat(dir, temporary, 0);
    }
    if (fd >= 0)
        close(fd);
    close(dir);
    return ok;
}

static gboolean
same_file(const char *path, const Content *content, mode_t mode, uid_t uid)
{
    g_auto(Content) old = {0};
    struct stat info;

    return read_content(path, &old, &info, NULL) && (info.st_mode & 07777) == mode && info.st_uid == uid &&
           old.length == content->length && memcmp(old.text, content->text, old.length) == 0;
}

/* Every key that has a value, never the value. */
static char *
list_keys(GPtrArray *entries)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < entries->len; i++) {
        const EbEnvEntry *entry = entries->pdata[i];
        if (*entry->value != '\0')
            g_string_append_printf(text, "%s%s", text->len > 0 ? ", " : "", entry->key);
    }
    if (text->len == 0)
        g_string_append(text, "no key that has a value");
    return g_string_free(text, FALSE);
}

/* What is handed over decides what leaves a guest and which keys are used, so it must be from root or from whoever calls
 * as root. */
static gboolean
check_owner(const char *path, const struct stat *info, mode_t forbidden, GError **error)
{
    const char *caller = g_getenv("SUDO_UID");
    guint64 uid = 0;

    if (caller != NULL && !g_ascii_string_to_unsigned(caller, 10, 0, G_MAXUINT32, &uid, NULL))
        uid = 0;
    if (info->st_uid != 0 && info->st_uid != geteuid() && info->st_uid != (uid_t)uid) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.file-owner",
                     "%s belongs to uid %u, who could change it: chown it to root", path, (guint)info->st_uid);
        return FALSE;
    }
    if ((info->st_mode & forbidden & 044) != 0)
        eb_set_error(
            error, EB_ERROR_CONFIG, "provision.open-credentials",
            "%s can be read by other accounts (mode %04o): chmod 600 it, and replace what others may have read", path,
            info->st_mode & 07777);
    else if ((info->st_mode & forbidden) != 0)
        eb_set_error(error, EB_ERROR_CONFIG, "provision.open-file",
                     "%s can be changed by other accounts (mode %04o): look at what is in it, then chmod go-w it", path,
                     info->st_mode & 07777);
    return (info->st_mode & forbidden) == 0;
}

static gboolean
read_entries(const char *path, Content *content, gboolean credentials, GPtrArray **entries, GError **error)
{
    struct stat info;

    if (!read_content(path, content, &info, error) || !check_owner(path, &info, credentials ? 077 : 022, error))
        return FALSE;
    *entries = eb_env_file_parse(content->text, content->length, error);
    if (*entries == NULL || !(credentials ? eb_settings_check_credentials(*entries, error)
                                          : eb_settings_check_keys(*entries, EB_SETTING_KEYS, error))) {
        g_prefix_error(error, "%s: ", path);
        return FALSE;
    }
    return TRUE;
}

/* --- credentials --- */

static gboolean
load_credentials(EbSetup *self, Content *content, GPtrArray **entries, GError **error)
{
    return read_entries(self->options.creds_file, content, TRUE, entries, error);
}

static void
note_empty(EbFindings *findings, GPtrArray *entries)
{
    for (guint i = 0; i < entries->len; i++) {
        const EbEnvEntry *entry = entries->pdata[i];
        if (*entry->value == '\0')
            eb_findings_note(findings, "%s is empty: as if it were not there", entry->key);
    }
}

/* What an operator does next with the token of a bot. */
static void
note_invite(EbFindings *findings, GPtrArray *entries)
{
    const char *token = eb_env_file_lookup(entries, "ERRAND_CHAT_TOKEN");
    g_autofree char *url = token != NULL ? eb_setup_invite_url(token) : NULL;

    if (url != NULL)
        eb_findings_note(findings, "invite the bot to your server: %s", url);
}

/* The same of credentials that were stored earlier, as far as they can be read. */
static void
note_stored_invite(const char *path, EbFindings *findings)
{
    g_auto(Content) content = {0};
    struct stat info;
    g_autoptr(GPtrArray) entries = NULL;

    if (read_content(path, &content, &info, NULL))
        entries = eb_env_file_parse(content.text, content.length, NULL);
    if (entries != NULL)
        note_invite(findings, entries);
}

static gboolean
check_credentials(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autofree char *stored = g_build_filename(self->state_dir, "creds.env", NULL);
    g_autoptr(GPtrArray) entries = NULL;
    g_auto(Content) content = {0};
    g_autofree char *keys = NULL;
    uid_t uid = 0;
    gid_t gid = 0;

    if (self->options.creds_file == NULL) {
        if (g_file_test(stored, G_FILE_TEST_EXISTS))
            eb_findings_note(findings, "stored earlier in %s", stored);
        else
            eb_findings_note(findings, "none given (--creds FILE)");
        note_stored_invite(stored, findings);
        return TRUE;
    }
    if (!load_credentials(self, &content, &entries, error))
        return FALSE;
    keys = list_keys(entries);
    if (!eb_setup_account_ids(self, &uid, &gid) || !same_file(stored, &content, 0600, uid))
        eb_findings_change(findings, "store %s in %s (0600, %s)", entries->len > 0 ? keys : "an empty file", stored,
                           self->account);
    else
        eb_findings_note(findings, "read %s", *keys != '\0' ? keys : "no keys");
    note_empty(findings, entries);
    note_invite(findings, entries);
    return TRUE;
}

static gboolean
apply_credentials(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autofree char *stored = g_build_filename(self->state_dir, "creds.env", NULL);
    g_autofree char *keys = NULL;
    const char *before;
    g_autoptr(GPtrArray) entries = NULL;
    g_auto(Content) content = {0};
    uid_t uid = 0;
    gid_t gid = 0;

    if (!load_credentials(self, &content, &entries, error) || !eb_setup_account_ids(self, &uid, &gid))
        return FALSE;
    keys = list_keys(entries);
    before = g_file_test(stored, G_FILE_TEST_EXISTS) ? "there" : NULL;
    return eb_setup_record(self, &eb_setup_step_credentials, "credentials", stored, before, keys, error) &&
           write_content(stored, &content, 0600, uid, gid, error);
}

char *
eb_setup_credentials_stay(EbSetup *self)
{
    g_autofree char *stored = g_build_filename(self->state_dir, "creds.env", NULL);
    g_autofree char *sealed = g_build_filename(self->state_dir, "creds.sealed", NULL);
    const EbLedgerEntry *entry = eb_setup_ledger_find(self->ledger, "credentials", stored);
    g_autoptr(GPtrArray) entries = NULL;
    g_auto(GStrv) known = NULL;
    g_auto(Content) content = {0};
    struct stat info;

    if (lstat(sealed, &info) == 0)
        return g_strdup_printf("%s holds what was sealed since", sealed);
    if (!read_content(stored, &content, &info, NULL))
        return NULL;
    if (entry == NULL || entry->before != NULL || entry->made == NULL)
        return g_strdup_printf("%s is not setup's own", stored);
    entries = eb_env_file_parse(content.text, content.length, NULL);
    known = g_strsplit(entry->made, ", ", -1);
    for (guint i = 0; entries != NULL && i < entries->len; i++) {
        const char *key = ((EbEnvEntry *)entries->pdata[i])->key;
        if (!g_strv_contains((const char *const *)known, key))
            return g_strdup_printf("%s was put into %s since", key, stored);
    }
    return entries != NULL ? NULL : g_strdup_printf("%s cannot be read", stored);
}

static EbUndone
undo_credentials(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    g_autofree char *directory = g_path_get_dirname(entry->name);
    g_autofree char *why = NULL;
    struct stat info;
    gboolean ok;
    int dir;

    if (lstat(entry->name, &info) < 0)
        return EB_UNDO_DONE;
    why = self->options.remove_data ? NULL : eb_setup_credentials_stay(self);
    if (why != NULL) {
        eb_findings_note(findings, "left the credentials: %s (to remove them too: errand-box setup --undo --yes-data)",
                         why);
        return EB_UNDO_KEPT;
    }
    eb_findings_change(findings, "%s %s", self->options.plan ? "remove" : "removed", entry->name);
    if (self->options.plan)
        return EB_UNDO_DONE;
    dir = eb_setup_open_directory(directory, error);
    if (dir < 0)
        return EB_UNDO_FAILED;
    ok = unlinkat(dir, "creds.env", 0) == 0 || errno == ENOENT;
    if (!ok)
        eb_set_error(error, EB_ERROR_FAILED, "provision.file", "%s: %s", entry->name, g_strerror(errno));
    close(dir);
    return ok ? EB_UNDO_DONE : EB_UNDO_FAILED;
}

const EbSetupStep eb_setup_step_credentials = {
    .id = "credentials",
    .title = "credentials",
    .undo_hint = "the file goes, unless others put more into it",
    .check = check_credentials,
    .apply = apply_credentials,
    .undo = undo_credentials,
};

/* --- settings --- */

/* What would be written is judged as the service would judge it: a file that it refuses helps nobody, and no later
 * command would get past it. The lines of a file that is not there yet are left out. */
static gboolean
judge_settings(EbSetup *self, const char *text, GError **error)
{
    const char *data_dir = self->options.paths != NULL ? eb_paths_get_data_dir(self->options.paths) : NULL;
    g_autoptr(GError) failure = NULL;
    g_autoptr(EbConfig) config =
        eb_config_load_text(self->options.config_file, self->settings_file, text, data_dir, &failure);
    g_autoptr(GString) said = g_string_new(NULL);
    g_auto(GStrv) lines = NULL;

    if (config != NULL)
        return TRUE;
    lines = g_strsplit(failure->message, "\n", -1);
    for (guint i = 0; lines[i] != NULL; i++) {
        const char *line = lines[i];
        if (g_str_has_prefix(line, self->settings_file)) {
            const char *after = strstr(line + strlen(self->settings_file), ": ");
            line = after != NULL ? after + 2 : line;
        }
        g_string_append_printf(said, "%s%s", i > 0 ? "; " : "", line);
    }
    eb_set_error(error, EB_ERROR_CONFIG, "settings.value", "%s", said->str);
    return FALSE;
}

static gboolean
load_settings(EbSetup *self, Content *content, GPtrArray **entries, GError **error)
{
    if (!read_entries(self->options.env_file, content, FALSE, entries, error))
        return FALSE;
    content_clear(content);
    content->text = eb_settings_to_toml(*entries, error);
    if (content->text == NULL || !judge_settings(self, content->text, error)) {
        g_prefix_error(error, "%s: ", self->options.env_file);
        return FALSE;
    }
    content->length = strlen(content->text);
    return TRUE;
}

static gboolean
check_settings(EbSetup *self, EbFindings *findings, GError **error)
{
    const char *path = self->settings_file;
    g_autoptr(GPtrArray) entries = NULL;
    g_auto(Content) content = {0};
    g_auto(Content) old = {0};
    g_autofree char *keys = NULL;
    struct stat info;

    if (self->options.env_file == NULL) {
        eb_findings_note(findings, "none given (--env FILE)");
        return TRUE;
    }
    if (!load_settings(self, &content, &entries, error))
        return FALSE;
    keys = list_keys(entries);
    if (same_file(path, &content, 0640, 0)) {
        eb_findings_note(findings, "read %s", keys);
        return TRUE;
    }
    if (read_content(path, &old, &info, NULL) && !g_str_has_prefix(old.text, EB_SETTINGS_MARK)) {
        eb_set_error(error, EB_ERROR_CONFIG, "provision.own-file",
                     "%s was not written by setup: put the settings of %s there yourself, or name another file", path,
                     self->options.env_file);
        return FALSE;
    }
    eb_findings_change(findings, "write %s from %s (0640, root:%s)", path, keys, self->account);
    return TRUE;
}

static gboolean
apply_settings(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GPtrArray) entries = NULL;
    g_auto(Content) content = {0};
    uid_t uid = 0;
    gid_t gid = 0;

    return load_settings(self, &content, &entries, error) && eb_setup_account_ids(self, &uid, &gid) &&
           eb_setup_place_file(self, &eb_setup_step_settings, self->settings_file, content.text, 0640, gid, error);
}

const EbSetupStep eb_setup_step_settings = {
    .id = "settings",
    .title = "configuration",
    .undo_hint = "the file goes, unless it was changed since",
    .check = check_settings,
    .apply = apply_settings,
};

const EbSetupStep *
eb_setup_find_bad_input(EbSetup *self, GError **error)
{
    g_autoptr(GPtrArray) credentials = NULL;
    g_autoptr(GPtrArray) settings = NULL;
    g_auto(Content) secret = {0};
    g_auto(Content) text = {0};

    if (self->options.creds_file != NULL && !load_credentials(self, &secret, &credentials, error))
        return &eb_setup_step_credentials;
    if (self->options.env_file != NULL && !load_settings(self, &text, &settings, error))
        return &eb_setup_step_settings;
    return NULL;
}
