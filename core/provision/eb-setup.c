/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/provision/eb-setup-private.h"

/* Building a guest image is the longest a setup takes; another one waits for that. */
#define LOCK_WAIT_S 900
#define SETTINGS_FILE "/etc/errand-box/conf.d/50-setup.toml"
/* Not below state_dir, which the account may write: what is in there is acted on by root. */
#define LEDGER_DIR "/var/lib/errand-box-setup"
#define LOCK_FILE "/run/lock/errand-box-setup"

/* In this order: what a step needs stands before it. */
static const EbSetupStep *const STEPS[] = {
    &eb_setup_step_packages,    &eb_setup_step_account, &eb_setup_step_directories, &eb_setup_step_ranges,
    &eb_setup_step_kernel,      &eb_setup_step_lxcfs,   &eb_setup_step_daemon,      &eb_setup_step_pool,
    &eb_setup_step_project,     &eb_setup_step_profile, &eb_setup_step_network,     &eb_setup_step_group,
    &eb_setup_step_user_socket, &eb_setup_step_reach,   &eb_setup_step_credentials, &eb_setup_step_settings,
    &eb_setup_step_image,       &eb_setup_step_units,   &eb_setup_step_start,
};

const char *
eb_setup_result_to_string(EbSetupResult result)
{
    static const char *const NAMES[] = {"ok", "changed", "planned", "degraded", "failed"};

    return NAMES[result];
}

static void
row_free(gpointer data)
{
    EbSetupRow *row = data;

    g_free(row->detail);
    g_free(row->undo);
    g_free(row);
}

EbSetup *
eb_setup_new(const EbSetupOptions *options)
{
    EbSetup *self = g_new0(EbSetup, 1);
    g_autoptr(EbConfigSection) backend = NULL;
    g_autofree char *socket = NULL;

    self->options = *options;
    self->rows = g_ptr_array_new_with_free_func(row_free);
    self->account = g_strdup(eb_config_get_account(options->config));
    self->state_dir = g_strdup(eb_config_get_state_dir(options->config));
    self->project_root = g_strdup(eb_config_get_project_root(options->config));
    self->daemon_dir = eb_provision_daemon_dir();
    self->private = strcmp(self->daemon_dir, "/var/lib/incus") != 0;
    self->pid_dir = g_strdup(self->private ? self->daemon_dir : "/run/errand-box");

    backend = eb_config_get_plugin_section(options->config, eb_config_get_session(options->config)->backend);
    self->pool = eb_config_section_get_string(backend, "pool", NULL, NULL);
    self->project = eb_config_section_get_string(backend, "project", NULL, NULL);
    self->image = eb_config_section_get_string(backend, "image", "errand-box/guest", NULL);
    if (self->pool == NULL || *self->pool == '\0') {
        g_free(self->pool);
        self->pool = g_strdup("errand");
    }
    if (self->project != NULL && *self->project == '\0')
        g_clear_pointer(&self->project, g_free);
    self->settings_file =
        g_canonicalize_filename(options->config_file != NULL ? options->config_file : SETTINGS_FILE, NULL);
    self->ledger_dir = self->private ? g_strconcat(self->daemon_dir, "-setup", NULL) : g_strdup(LEDGER_DIR);
    socket = g_build_filename(self->daemon_dir, "unix.socket", NULL);
    self->client = eb_provision_client_new(socket);
    return self;
}

void
eb_setup_free(EbSetup *self)
{
    if (self == NULL)
        return;
    g_ptr_array_unref(self->rows);
    eb_provision_client_free(self->client);
    g_free(self->account);
    g_free(self->state_dir);
    g_free(self->project_root);
    g_free(self->daemon_dir);
    g_free(self->pid_dir);
    g_free(self->ledger_dir);
    g_free(self->settings_file);
    g_clear_object(&self->supervisor);
    g_clear_object(&self->service_supervisor);
    g_free(self->start_problem);
    eb_setup_ledger_free(self->ledger);
    g_free(self->pool);
    g_free(self->project);
    g_free(self->image);
    g_free(self);
}

void
eb_setup_set_progress(EbSetup *self, EbSetupProgress progress, gpointer user_data)
{
    self->progress = progress;
    self->progress_data = user_data;
}

void
eb_setup_say(EbSetup *self, const char *format, ...)
{
    g_autofree char *text = NULL;
    va_list args;

    va_start(args, format);
    text = g_strdup_vprintf(format, args);
    va_end(args);
    if (self->progress != NULL)
        self->progress(text, NULL, self->progress_data);
}

gboolean
eb_setup_account_ids(EbSetup *self, uid_t *uid, gid_t *gid)
{
    const struct passwd *entry = getpwnam(self->account);

    if (entry == NULL)
        return FALSE;
    *uid = entry->pw_uid;
    *gid = entry->pw_gid;
    return TRUE;
}

const char *
eb_setup_get_project(EbSetup *self)
{
    uid_t uid;
    gid_t gid;

    if (self->project == NULL && eb_setup_account_ids(self, &uid, &gid))
        self->project = g_strdup_printf("user-%u", (guint)uid);
    return self->project;
}

static void G_GNUC_PRINTF(2, 0) add_text(GPtrArray *list, const char *format, va_list args)
{
    g_ptr_array_add(list, g_strdup_vprintf(format, args));
}

void
eb_findings_change(EbFindings *self, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_text(self->changes, format, args);
    va_end(args);
}

void
eb_findings_note(EbFindings *self, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    add_text(self->notes, format, args);
    va_end(args);
}

void
eb_findings_degraded(EbFindings *self, const char *format, ...)
{
    va_list args;

    self->degraded = TRUE;
    va_start(args, format);
    add_text(self->notes, format, args);
    va_end(args);
}

void
eb_findings_reset(EbFindings *self)
{
    g_clear_pointer(&self->changes, g_ptr_array_unref);
    g_clear_pointer(&self->notes, g_ptr_array_unref);
    self->changes = g_ptr_array_new_with_free_func(g_free);
    self->notes = g_ptr_array_new_with_free_func(g_free);
    self->degraded = FALSE;
}

static char *
join(GPtrArray *first, GPtrArray *second)
{
    GString *text = g_string_new(NULL);

    for (guint i = 0; i < first->len + second->len; i++) {
        if (text->len > 0)
            g_string_append_c(text, '\n');
        g_string_append(text, i < first->len ? first->pdata[i] : second->pdata[i - first->len]);
    }
    return g_string_free(text, FALSE);
}

/* After a change the step must find nothing left to do: a change that does not hold is a failure here and now. */
static gboolean
check_again(EbSetup *self, const EbSetupStep *step, EbFindings *findings, GError **error)
{
    g_autoptr(GPtrArray) done = g_steal_pointer(&findings->changes);
    g_autoptr(GPtrArray) notes = g_steal_pointer(&findings->notes);
    gboolean degraded = findings->degraded;

    eb_findings_reset(findings);
    if (!step->check(self, findings, error))
        return FALSE;
    if (findings->changes->len > 0) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.no-effect", "%s: done, and yet: %s", step->title,
                     (const char *)findings->changes->pdata[0]);
        return FALSE;
    }
    g_ptr_array_unref(findings->changes);
    findings->changes = g_steal_pointer(&done);
    if (findings->notes->len == 0) {
        g_ptr_array_unref(findings->notes);
        findings->notes = g_steal_pointer(&notes);
    }
    findings->degraded |= degraded;
    return TRUE;
}

static gboolean
run_step(EbSetup *self, const EbSetupStep *step, EbFindings *findings, EbSetupResult *result, GError **error)
{
    *result = EB_SETUP_FAILED;
    if (!step->check(self, findings, error))
        return FALSE;
    if (findings->changes->len == 0) {
        *result = findings->degraded ? EB_SETUP_DEGRADED : EB_SETUP_OK;
        return TRUE;
    }
    if (self->options.plan) {
        *result = EB_SETUP_PLANNED;
        return TRUE;
    }
    if (!step->apply(self, findings, error) || !check_again(self, step, findings, error))
        return FALSE;
    *result = findings->degraded ? EB_SETUP_DEGRADED : EB_SETUP_CHANGED;
    return TRUE;
}

/* One setup at a time on a machine: they share /etc files. The lock ends with the process. */
int
eb_setup_take_lock(EbSetup *self, GError **error)
{
    int fd;

    /* A container without an init has an empty /run. */
    if (mkdir("/run/lock", 0755) < 0 && errno != EEXIST) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.lock", "/run/lock: %s", g_strerror(errno));
        return -1;
    }
    fd = open(LOCK_FILE, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "provision.lock", "%s: %s", LOCK_FILE, g_strerror(errno));
        return -1;
    }
    for (guint tenths = 0; flock(fd, LOCK_EX | LOCK_NB) < 0; tenths++) {
        if (tenths == 0)
            eb_setup_say(self, "waiting for another setup on this machine");
        if (tenths >= LOCK_WAIT_S * 10) {
            eb_set_error(error, EB_ERROR_LOCKED, "provision.lock", "another setup is at work for more than %d min",
                         LOCK_WAIT_S / 60);
            close(fd);
            return -1;
        }
        g_usleep(100 * 1000);
    }
    return fd;
}

EbSetupRow *
eb_setup_add_row(EbSetup *self, const EbSetupStep *step, EbFindings *findings, EbSetupResult result, gint64 start,
                 const GError *failure)
{
    EbSetupRow *row = g_new0(EbSetupRow, 1);

    row->id = step->id;
    row->title = step->title;
    row->result = failure != NULL ? EB_SETUP_FAILED : result;
    row->detail = failure != NULL ? g_strdup(failure->message) : join(findings->changes, findings->notes);
    row->ms = (guint)((g_get_monotonic_time() - start) / 1000);
    g_clear_pointer(&findings->changes, g_ptr_array_unref);
    g_clear_pointer(&findings->notes, g_ptr_array_unref);
    g_ptr_array_add(self->rows, row);
    return row;
}

static gboolean
run_all(EbSetup *self, GError **error)
{
    for (guint i = 0; i < G_N_ELEMENTS(STEPS); i++) {
        EbFindings findings = {0};
        EbSetupResult result = EB_SETUP_FAILED;
        gint64 start = g_get_monotonic_time();
        g_autoptr(GError) failure = NULL;
        EbSetupRow *row;

        eb_findings_reset(&findings);
        run_step(self, STEPS[i], &findings, &result, &failure);
        row = eb_setup_add_row(self, STEPS[i], &findings, result, start, failure);
        if (result == EB_SETUP_CHANGED || result == EB_SETUP_PLANNED)
            row->undo = g_strdup(STEPS[i]->undo_hint);
        if (self->progress != NULL)
            self->progress(row->title, row, self->progress_data);
        if (failure != NULL) {
            g_propagate_prefixed_error(error, g_steal_pointer(&failure), "setup stopped at \"%s\": ", row->title);
            return FALSE;
        }
    }
    return TRUE;
}

const EbSetupStep *const *
eb_setup_steps(guint *n)
{
    *n = G_N_ELEMENTS(STEPS);
    return STEPS;
}

static gboolean
check_inputs(EbSetup *self, GError **error)
{
    GError *failure = NULL;
    const EbSetupStep *step = eb_setup_find_bad_input(self, &failure);

    if (step == NULL)
        return TRUE;
    EbSetupRow *row = g_new0(EbSetupRow, 1);
    row->id = step->id;
    row->title = step->title;
    row->result = EB_SETUP_FAILED;
    row->detail = g_strdup(failure->message);
    g_ptr_array_add(self->rows, row);
    g_propagate_error(error, failure);
    return FALSE;
}

gboolean
eb_setup_run(EbSetup *self, GError **error)
{
    int lock = -1;
    gboolean ok;

    /* A mistake in what was handed over is told before anything is changed, and before waiting for another setup. */
    if (!check_inputs(self, error))
        return FALSE;
    if (!self->options.plan) {
        if (geteuid() != 0) {
            eb_set_error(error, EB_ERROR_DENIED, "provision.root",
                         "setup changes accounts and daemons: run it as root (or with --plan to see what it would do)");
            return FALSE;
        }
        lock = eb_setup_take_lock(self, error);
        if (lock < 0)
            return FALSE;
    }
    ok = eb_setup_begin(self, error) && run_all(self, error);
    if (lock >= 0)
        close(lock);
    return ok;
}

GPtrArray *
eb_setup_get_rows(EbSetup *self)
{
    return self->rows;
}

JsonNode *
eb_setup_to_json(EbSetup *self)
{
    g_autoptr(JsonBuilder) builder = json_builder_new();

    json_builder_begin_object(builder);
    json_builder_set_member_name(builder, "schema");
    json_builder_add_int_value(builder, 1);
    json_builder_set_member_name(builder, "steps");
    json_builder_begin_array(builder);
    for (guint i = 0; i < self->rows->len; i++) {
        const EbSetupRow *row = self->rows->pdata[i];
        json_builder_begin_object(builder);
        json_builder_set_member_name(builder, "id");
        json_builder_add_string_value(builder, row->id);
        json_builder_set_member_name(builder, "title");
        json_builder_add_string_value(builder, row->title);
        json_builder_set_member_name(builder, "result");
        json_builder_add_string_value(builder, eb_setup_result_to_string(row->result));
        json_builder_set_member_name(builder, "detail");
        json_builder_add_string_value(builder, row->detail);
        json_builder_set_member_name(builder, "undo");
        if (row->undo != NULL)
            json_builder_add_string_value(builder, row->undo);
        else
            json_builder_add_null_value(builder);
        json_builder_set_member_name(builder, "ms");
        json_builder_add_int_value(builder, row->ms);
        json_builder_end_object(builder);
    }
    json_builder_end_array(builder);
    json_builder_end_object(builder);
    return json_builder_get_root(builder);
}
