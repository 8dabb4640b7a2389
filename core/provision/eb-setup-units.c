/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <unistd.h>

#include "core/provision/eb-setup-units.h"
#include "core/provision/eb-unit-text.h"

/* What the supervisor found is given to run: unit files, or service directories. They are filled in from data/units for
 * this installation and this configuration. */

#define SYSTEMD_DIR "/etc/systemd/system"
#define TMPFILES "/etc/tmpfiles.d/errand-box.conf"
#define S6_DIR "/etc/errand-box/s6"
#define S6_LOG_DIR "/var/log/errand-box"
/* Until s6 kills what it was told to end: a drain, and a little more than its own limits. */
#define S6_KILL_MS "130000\n"
#define S6_WATCHDOG_KILL_MS "5000\n"

/* Where packages install units: one that is the same there is not written again. */
static const char *const PACKAGED[] = {"/usr/local/lib", "/usr/lib", "/lib"};

/* One file that is to stand on the host. */
typedef struct {
    char *path;
    char *text;
    mode_t mode;
    char *packaged; /* (nullable): below PACKAGED, where a package may have put the same */
} Wanted;

static void
wanted_free(gpointer data)
{
    Wanted *wanted = data;

    g_free(wanted->path);
    g_free(wanted->text);
    g_free(wanted->packaged);
    g_free(wanted);
}

static Wanted *
add_wanted(GPtrArray *list, char *path, char *text, mode_t mode)
{
    Wanted *wanted = g_new0(Wanted, 1);

    wanted->path = path;
    wanted->text = text;
    wanted->mode = mode;
    g_ptr_array_add(list, wanted);
    return wanted;
}

/* --- what both kinds share --- */

EbSupervisor *
eb_setup_units_supervisor(EbSetup *self, GError **error)
{
    const char *named = g_getenv(EB_SUPERVISOR_S6_VARIABLE);

    if (self->service_supervisor == NULL && !self->private && self->supervisor != NULL)
        self->service_supervisor = g_object_ref(self->supervisor);
    if (self->service_supervisor == NULL && self->private && named != NULL && *named != '\0')
        self->service_supervisor = eb_supervisor_find(named, error);
    if (self->service_supervisor == NULL || eb_supervisor_get_kind(self->service_supervisor) == EB_SUPERVISOR_NONE)
        return NULL;
    return self->service_supervisor;
}

const char *const *
eb_setup_units_names(EbSetup *self)
{
    static const char *const BOTH[] = {EB_SETUP_UNIT_SERVICE, EB_SETUP_UNIT_WATCHDOG, NULL};
    static const char *const SERVICE[] = {EB_SETUP_UNIT_SERVICE, NULL};
    const char *watchdog = eb_paths_get_program_path(self->options.paths, EB_SETUP_UNIT_WATCHDOG);

    return access(watchdog, X_OK) == 0 ? BOTH : SERVICE;
}

/* Beside a daemon directory of its own, as its ledger is. */
static char *
unit_dir(EbSetup *self, const char *system_dir, const char *kind, const char *unit)
{
    g_autofree char *own = g_strconcat(self->daemon_dir, "-units", NULL);

    return self->private ? g_build_filename(own, kind, unit, NULL) : g_build_filename(system_dir, unit, NULL);
}

char *
eb_setup_units_service_dir(EbSetup *self, const char *unit)
{
    return unit_dir(self, S6_DIR, "s6", unit);
}

char *
eb_setup_units_log_dir(EbSetup *self, const char *unit)
{
    return unit_dir(self, S6_LOG_DIR, "log", unit);
}

/* (transfer full) (nullable): absolute, since a unit has no working directory of the operator's */
static char *
config_path(EbSetup *self)
{
    return self->options.config_file != NULL ? g_canonicalize_filename(self->options.config_file, NULL) : NULL;
}

static char *
read_template(EbSetup *self, const char *kind, const char *name, GError **error)
{
    g_autofree char *file = g_strconcat(name, ".in", NULL);
    g_autofree char *path = g_build_filename(eb_paths_get_data_dir(self->options.paths), "units", kind, file, NULL);
    char *text = NULL;

    if (!g_file_get_contents(path, &text, NULL, error))
        eb_error_convert(error, "provision.template", "the installation is not complete");
    return text;
}

gboolean
eb_setup_units_query(EbSetup *self, EbSupervisor *supervisor, EbUnitStatus *status, GError **error)
{
    g_autoptr(GError) failure = NULL;

    if (eb_supervisor_query(supervisor, EB_SETUP_UNIT_SERVICE, status, &failure))
        return TRUE;
    /* As a plain user --plan cannot ask. */
    if (self->options.plan && g_error_matches(failure, EB_ERROR, EB_ERROR_DENIED))
        return TRUE;
    g_propagate_error(error, g_steal_pointer(&failure));
    return FALSE;
}

/* A unit of that name that runs another configuration is somebody else's. */
static gboolean
check_owner(EbSetup *self, EbSupervisor *supervisor, GError **error)
{
    g_autofree char *config = config_path(self);
    g_auto(EbUnitStatus) status = {.exit_code = -1};

    if (!eb_setup_units_query(self, supervisor, &status, error))
        return FALSE;
    if (status.state == EB_UNIT_MISSING || g_strcmp0(status.config, config) == 0)
        return TRUE;
    eb_set_error(error, EB_ERROR_CONFIG, "provision.unit",
                 "%s of this host runs the configuration %s, this setup is for %s: take that service away first",
                 EB_SETUP_UNIT_SERVICE, status.config != NULL ? status.config : "in /etc/errand-box",
                 config != NULL ? config : "the one in /etc/errand-box");
    return FALSE;
}

/* --- systemd --- */

/* (transfer full) (nullable): words for ReadWritePaths= */
static char *
writable_words(EbSetup *self, GError **error)
{
    const char *roots[] = {self->state_dir};
    g_autofree char *state = eb_unit_text_systemd(self->state_dir, FALSE, error);
    g_autofree char *projects = state != NULL ? eb_unit_text_systemd(self->project_root, FALSE, error) : NULL;
    const char *inside[] = {self->project_root};

    if (projects == NULL)
        return NULL;
    return eb_unit_text_is_below(inside, 1, roots[0]) ? g_steal_pointer(&state)
                                                      : g_strdup_printf("%s %s", state, projects);
}

/* (transfer full) (nullable): lines of Environment= */
static char *
environment_lines(EbSetup *self, GError **error)
{
    g_autofree char *config = config_path(self);
    g_autofree char *setting = config != NULL ? g_strconcat("ERRAND_BOX_CONFIG=", config, NULL) : NULL;
    g_autofree char *word = setting != NULL ? eb_unit_text_systemd(setting, FALSE, error) : NULL;

    if (setting == NULL)
        return g_strdup("");
    return word != NULL ? g_strconcat("Environment=", word, NULL) : NULL;
}

static gboolean
add_systemd(EbSetup *self, GPtrArray *list, GError **error)
{
    const char *program = eb_paths_get_program_path(self->options.paths, EB_SETUP_UNIT_SERVICE);
    const char *watchdog = eb_paths_get_program_path(self->options.paths, EB_SETUP_UNIT_WATCHDOG);
    g_autofree char *config = config_path(self);
    const char *paths[] = {self->state_dir, self->project_root, config, program,
                           eb_paths_get_data_dir(self->options.paths)};
    g_autofree char *program_word = eb_unit_text_systemd(program, TRUE, error);
    g_autofree char *watchdog_word = program_word != NULL ? eb_unit_text_systemd(watchdog, TRUE, error) : NULL;
    g_autofree char *state_word = watchdog_word != NULL ? eb_unit_text_systemd(self->state_dir, FALSE, error) : NULL;
    g_autofree char *writable = state_word != NULL ? writable_words(self, error) : NULL;
    g_autofree char *environment = writable != NULL ? environment_lines(self, error) : NULL;
    gboolean homes = eb_unit_text_is_below(paths, G_N_ELEMENTS(paths), "/home") ||
                     eb_unit_text_is_below(paths, G_N_ELEMENTS(paths), "/root") ||
                     eb_unit_text_is_below(paths, G_N_ELEMENTS(paths), "/run/user");
    gboolean temporary = eb_unit_text_is_below(paths, G_N_ELEMENTS(paths), "/tmp") ||
                         eb_unit_text_is_below(paths, G_N_ELEMENTS(paths), "/var/tmp");
    const char *const *names = eb_setup_units_names(self);

    if (environment == NULL)
        return FALSE;
    EbUnitValue values[] = {{"PROGRAM", program_word},
                            {"WATCHDOG", watchdog_word},
                            {"ENVIRONMENT", environment},
                            {"ACCOUNT", self->account},
                            {"STATE", state_word},
                            {"WRITABLE", writable},
                            {"PROTECT_HOME", homes ? "read-only" : "yes"},
                            {"PRIVATE_TMP", temporary ? "no" : "yes"},
                            {NULL, NULL}};
    for (guint i = 0; names[i] != NULL; i++) {
        g_autofree char *file = g_strconcat(names[i], ".service", NULL);
        g_autofree char *template = read_template(self, "systemd", file, error);
        char *text = template != NULL ? eb_unit_text_fill(template, values, error) : NULL;
        if (text == NULL)
            return FALSE;
        add_wanted(list, g_build_filename(SYSTEMD_DIR, file, NULL), text, 0644)->packaged =
            g_build_filename("systemd/system", file, NULL);
    }
    g_autofree char *template = read_template(self, "systemd", "tmpfiles.conf", error);
    char *text = template != NULL ? eb_unit_text_fill(template, values, error) : NULL;
    if (text == NULL)
        return FALSE;
    add_wanted(list, g_strdup(TMPFILES), text, 0644)->packaged = g_strdup("tmpfiles.d/errand-box.conf");
    return TRUE;
}

/* --- s6 --- */

static gboolean
add_s6_unit(EbSetup *self, const char *unit, const EbUnitValue *values, GPtrArray *list, GError **error)
{
    g_autofree char *dir = eb_setup_units_service_dir(self, unit);
    g_autofree char *logs = eb_setup_units_log_dir(self, unit);
    g_autofree char *run_name = g_strconcat(unit, ".run", NULL);
    g_autofree char *config = config_path(self);
    g_autofree char *run = read_template(self, "s6", run_name, error);
    g_autofree char *finish = run != NULL ? read_template(self, "s6", "finish", error) : NULL;
    g_autofree char *log = finish != NULL ? read_template(self, "s6", "log.run", error) : NULL;
    g_autofree char *log_word = log != NULL ? eb_unit_text_shell(logs, error) : NULL;
    EbUnitValue log_values[] = {{"LOG", log_word}, {NULL, NULL}};
    gboolean watchdog = strcmp(unit, EB_SETUP_UNIT_WATCHDOG) == 0;
    char *filled;

    /* s6-envdir takes one line for the value. */
    g_autofree char *config_word = config != NULL && log_word != NULL ? eb_unit_text_shell(config, error) : NULL;
    if (config != NULL && config_word == NULL)
        return FALSE;
    if (log_word == NULL || (filled = eb_unit_text_fill(run, values, error)) == NULL)
        return FALSE;
    add_wanted(list, g_build_filename(dir, "run", NULL), filled, 0755);
    add_wanted(list, g_build_filename(dir, "finish", NULL), g_strdup(finish), 0755);
    add_wanted(list, g_build_filename(dir, "notification-fd", NULL), g_strdup("3\n"), 0644);
    add_wanted(list, g_build_filename(dir, "timeout-kill", NULL), g_strdup(watchdog ? S6_WATCHDOG_KILL_MS : S6_KILL_MS),
               0644);
    add_wanted(list, g_build_filename(dir, "env", "ERRAND_BOX_NOTIFY_FD", NULL), g_strdup("3\n"), 0644);
    if (config != NULL)
        add_wanted(list, g_build_filename(dir, "env", "ERRAND_BOX_CONFIG", NULL), g_strconcat(config, "\n", NULL),
                   0644);
    if (self->private)
        add_wanted(list, g_build_filename(dir, "env", "INCUS_DIR", NULL), g_strconcat(self->daemon_dir, "\n", NULL),
                   0644);
    if ((filled = eb_unit_text_fill(log, log_values, error)) == NULL)
        return FALSE;
    add_wanted(list, g_build_filename(dir, "log", "run", NULL), filled, 0755);
    add_wanted(list, g_build_filename(dir, "log", "notification-fd", NULL), g_strdup("3\n"), 0644);
    add_wanted(list, g_build_filename(dir, "log", "logdir", NULL), g_strconcat(logs, "\n", NULL), 0644);
    return TRUE;
}

static gboolean
add_s6(EbSetup *self, GPtrArray *list, GError **error)
{
    const char *program = eb_paths_get_program_path(self->options.paths, EB_SETUP_UNIT_SERVICE);
    const char *watchdog = eb_paths_get_program_path(self->options.paths, EB_SETUP_UNIT_WATCHDOG);
    g_autofree char *program_word = eb_unit_text_shell(program, error);
    g_autofree char *watchdog_word = program_word != NULL ? eb_unit_text_shell(watchdog, error) : NULL;
    EbUnitValue values[] = {{"PROGRAM", program_word}, {"WATCHDOG", watchdog_word}, {NULL, NULL}};
    const char *const *names = eb_setup_units_names(self);

    if (watchdog_word == NULL)
        return FALSE;
    for (guint i = 0; names[i] != NULL; i++)
        if (!add_s6_unit(self, names[i], values, list, error))
            return FALSE;
    return TRUE;
}

/* --- the step --- */

/* (transfer full) (nullable) (element-type Wanted) */
static GPtrArray *
list_wanted(EbSetup *self, EbSupervisor *supervisor, GError **error)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(wanted_free);
    gboolean ok = eb_supervisor_get_kind(supervisor) == EB_SUPERVISOR_SYSTEMD ? add_systemd(self, list, error)
                                                                              : add_s6(self, list, error);

    return ok ? g_steal_pointer(&list) : NULL;
}

static gboolean
is_there(const Wanted *wanted)
{
    if (eb_setup_has_file(wanted->path, wanted->text, wanted->mode))
        return TRUE;
    /* What stands in /etc comes before what a package brought. */
    if (wanted->packaged == NULL || g_file_test(wanted->path, G_FILE_TEST_EXISTS))
        return FALSE;
    for (guint i = 0; i < G_N_ELEMENTS(PACKAGED); i++) {
        g_autofree char *path = g_build_filename(PACKAGED[i], wanted->packaged, NULL);
        if (eb_setup_has_file(path, wanted->text, wanted->mode))
            return TRUE;
    }
    return FALSE;
}

static gboolean
check_units(EbSetup *self, EbFindings *findings, GError **error)
{
    g_autoptr(GError) failure = NULL;
    EbSupervisor *supervisor = eb_setup_units_supervisor(self, &failure);
    g_autoptr(GPtrArray) list = NULL;

    if (failure != NULL) {
        g_propagate_error(error, g_steal_pointer(&failure));
        return FALSE;
    }
    if (supervisor == NULL) {
        eb_findings_note(findings, "no supervisor (systemd, s6) for it: errand-box up runs it in the foreground");
        return TRUE;
    }
    if (!check_owner(self, supervisor, error) || (list = list_wanted(self, supervisor, error)) == NULL)
        return FALSE;
    for (guint i = 0; i < list->len; i++)
        if (!is_there(list->pdata[i]))
            eb_findings_change(findings, "write %s", ((Wanted *)list->pdata[i])->path);
    return TRUE;
}

static gboolean
apply_units(EbSetup *self, EbFindings *findings, GError **error)
{
    EbSupervisor *supervisor = eb_setup_units_supervisor(self, error);
    g_autoptr(GPtrArray) list = supervisor != NULL ? list_wanted(self, supervisor, error) : NULL;
    const char *const *names = eb_setup_units_names(self);

    if (list == NULL)
        return FALSE;
    for (guint i = 0; eb_supervisor_get_kind(supervisor) == EB_SUPERVISOR_S6 && names[i] != NULL; i++) {
        g_autofree char *logs = eb_setup_units_log_dir(self, names[i]);
        if (!eb_setup_place_directory(self, &eb_setup_step_units, logs, error))
            return FALSE;
    }
    for (guint i = 0; i < list->len; i++) {
        const Wanted *wanted = list->pdata[i];
        if (!is_there(wanted) &&
            !eb_setup_place_file(self, &eb_setup_step_units, wanted->path, wanted->text, wanted->mode, 0, error))
            return FALSE;
    }
    self->units_changed = TRUE;
    return eb_supervisor_get_kind(supervisor) != EB_SUPERVISOR_SYSTEMD || eb_supervisor_reload(supervisor, error);
}

static EbUndone
undo_units(EbSetup *self, const EbLedgerEntry *entry, EbFindings *findings, GError **error)
{
    gboolean unit = g_str_has_prefix(entry->name, SYSTEMD_DIR "/");
    EbUndone undone = eb_setup_undo_place(self, entry, findings, error);
    EbSupervisor *supervisor = unit && undone == EB_UNDO_DONE ? eb_setup_units_supervisor(self, NULL) : NULL;

    /* systemd remembers a unit until it looks again. */
    if (supervisor != NULL && !self->options.plan && !eb_supervisor_reload(supervisor, error))
        return EB_UNDO_FAILED;
    return undone;
}

const EbSetupStep eb_setup_step_units = {
    .id = "units",
    .title = "units of the service",
    .undo_hint = "errand-box setup --undo takes the files away",
    .check = check_units,
    .apply = apply_units,
    .undo = undo_units,
};
