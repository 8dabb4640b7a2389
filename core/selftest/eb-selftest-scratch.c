/* SPDX-License-Identifier: MIT */
#include "core/selftest/eb-selftest-scratch.h"

#include "core/base/eb-tree-remove.h"
#include "core/config/eb-config-schema.h"
#include "core/selftest/eb-selftest-look.h"
#include "core/session/eb-dead-roots.h"
#include "core/session/eb-dir-lock.h"
#include "core/session/eb-session-env.h"
#include "core/session/eb-session-manager.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define REMOVE_DEADLINE_MS (5 * 60 * 1000)
#define MAX_DEAD 64
#define AGENT_FILE "selftest-agent.py"

struct _EbSelftestScratch {
    char *parent, *dir;
    EbDirLock *lock; /* held as long as it is in use: what has no holder may be cleared away */
};

/* --- the configuration --- */

static void
append_value(GString *out, GVariant *value)
{
    if (g_variant_is_of_type(value, G_VARIANT_TYPE_STRING)) {
        eb_config_append_quoted(out, g_variant_get_string(value, NULL));
    } else if (g_variant_is_container(value)) {
        g_string_append_c(out, '[');
        for (gsize i = 0; i < g_variant_n_children(value); i++) {
            g_autoptr(GVariant) item = g_variant_get_child_value(value, i);
            g_string_append(out, i > 0 ? ", " : "");
            append_value(out, item);
        }
        g_string_append_c(out, ']');
    } else {
        g_autofree char *text = g_variant_print(value, FALSE); /* numbers and truth values are alike in both */
        g_string_append(out, text);
    }
}

static void
append_pair(GString *out, const char *key, const char *text)
{
    g_string_append_printf(out, "%s = ", key);
    eb_config_append_quoted(out, text);
    g_string_append_c(out, '\n');
}

static void
append_list(GString *out, const char *key, const char *const *items)
{
    g_autoptr(GVariant) value = g_variant_ref_sink(g_variant_new_strv(items, items == NULL ? 0 : -1));

    g_string_append_printf(out, "%s = ", key);
    append_value(out, value);
    g_string_append_c(out, '\n');
}

/* As it is for the service: the same daemon, project and image. */
static void
append_backend(GString *out, EbConfig *config, const char *name)
{
    g_autoptr(EbConfigSection) section = eb_config_get_plugin_section(config, name);
    g_autoptr(GPtrArray) keys = eb_config_section_get_keys(section);

    g_string_append_printf(out, "\n[plugin.%s]\n", name);
    for (guint i = 0; i < keys->len; i++) {
        g_string_append_printf(out, "%s = ", (char *)keys->pdata[i]);
        append_value(out, eb_config_section_get_value(section, keys->pdata[i]));
        g_string_append_c(out, '\n');
    }
}

char *
eb_selftest_config_text(const EbSelftestOptions *options, const char *root, const char *agent)
{
    const EbSessionConfig *session = eb_config_get_session(options->config);
    const char *const plugins[] = {options->backend_plugin, NULL};
    GString *out = g_string_new("# of one run of errand-box maint selftest\n[service]\n");
    g_autofree char *projects = g_build_filename(root, "home", "projects", NULL);

    append_pair(out, "account", eb_config_get_account(options->config));
    append_pair(out, "state_dir", root);
    append_pair(out, "project_root", projects);
    append_list(out, "accept_degraded", eb_config_get_accept_degraded(options->config));
    g_string_append(out, "\n[plugins]\n");
    append_list(out, "enabled", plugins);
    g_string_append(out, "\n[session]\n");
    append_pair(out, "backend", session->backend);
    append_pair(out, "agent", "selftest");
    /* Small guests that end quickly: several live at one time beside those of the service. */
    g_string_append(out, "memory = \"1GiB\"\ncpus = 1\npids = 128\ntmp = \"16MiB\"\nabort = \"2s\"\ngrace = \"1s\"\n"
                         "\n[limits]\nmax_live_sessions = 4\nmax_concurrent_turns = 4\n"
                         "\n[egress]\nmode = \"none\"\n");
    append_backend(out, options->config, options->backend_plugin);
    g_string_append(out, "\n[agent.selftest]\ntitle = \"The agent of the selftest\"\ndialects = []\n"
                         "command = [\"python3\", \"-I\", \"-S\", \"" EB_GUEST_HOME "/" AGENT_FILE "\"]\n"
                         "min_memory = \"1GiB\"\nmin_pids = 64\nstart_timeout = \"30s\"\neof = \"1s\"\nterm = \"1s\"\n"
                         "\n[[agent.selftest.file]]\npath = \"" AGENT_FILE "\"\ncontent = ");
    eb_config_append_quoted(out, agent);
    g_string_append_c(out, '\n');
    return g_string_free(out, FALSE);
}

/* --- the directories --- */

static gboolean
fail(GError **error, const char *path)
{
    eb_set_error(error, EB_ERROR_DENIED, "selftest.directory", "%s: %s", path, g_strerror(errno));
    return FALSE;
}

static gboolean
make_job(EbSelftestScratch *self, const EbSelftestOptions *options, guint number, const char *agent, GError **error)
{
    g_autofree char *root = eb_selftest_scratch_get_root(self, number);
    g_autofree char *projects = g_build_filename(root, "home", "projects", NULL);
    g_autofree char *path = eb_selftest_scratch_get_config(self, number);
    g_autofree char *text = eb_selftest_config_text(options, root, agent);
    GError *failed = NULL;

    g_autofree char *sessions = g_build_filename(root, "sessions", NULL);
    g_autofree char *tries = g_build_filename(root, EB_TRY_DIR, NULL);
    if (g_mkdir_with_parents(projects, 0700) != 0 || mkdir(sessions, 0700) != 0 || mkdir(tries, 0700) != 0)
        return fail(error, root);
    if (g_file_set_contents_full(path, text, -1, G_FILE_SET_CONTENTS_NONE, 0600, &failed))
        return TRUE;
    eb_error_convert(&failed, "selftest.directory", NULL);
    g_propagate_error(error, failed);
    return FALSE;
}

EbSelftestScratch *
eb_selftest_scratch_new(const EbSelftestOptions *options, GError **error)
{
    g_autoptr(EbSelftestScratch) self = g_new0(EbSelftestScratch, 1);
    g_autofree char *script = g_build_filename(eb_paths_get_data_dir(options->paths), "selftest", "agent.py", NULL);
    g_autofree char *agent = NULL;
    GError *failed = NULL;

    if (!g_file_get_contents(script, &agent, NULL, &failed)) {
        eb_error_convert(&failed, "selftest.agent", NULL);
        g_propagate_error(error, failed);
        return NULL;
    }
    self->parent = g_build_filename(eb_config_get_state_dir(options->config), EB_TRY_DIR, NULL);
    self->dir = g_build_filename(self->parent, "selftest-XXXXXX", NULL);
    if ((mkdir(self->parent, 0700) != 0 && errno != EEXIST) || g_mkdtemp_full(self->dir, 0700) == NULL) {
        fail(error, self->parent);
        g_clear_pointer(&self->dir, g_free);
        return NULL;
    }
    self->lock = eb_dir_lock_take(self->dir, EB_STATE_LOCK_FILE, error);
    gboolean good = self->lock != NULL;
    for (guint i = 0; good && i < options->jobs; i++)
        good = make_job(self, options, i, agent, error);
    if (good)
        return g_steal_pointer(&self);
    eb_selftest_scratch_remove(self, NULL);
    return NULL;
}

static EbSelftestScratch *
take_dead(const char *parent, const char *name, GPtrArray *homes)
{
    g_autoptr(EbSelftestScratch) self = g_new0(EbSelftestScratch, 1);

    self->parent = g_strdup(parent);
    self->dir = g_build_filename(parent, name, NULL);
    self->lock = eb_dir_lock_take(self->dir, EB_STATE_LOCK_FILE, NULL);
    for (guint i = 0; self->lock != NULL && i < EB_SELFTEST_MAX_JOBS; i++) {
        g_autofree char *root = eb_selftest_scratch_get_root(self, i);
        char *home = eb_selftest_read_home(root);
        if (home != NULL)
            g_ptr_array_add(homes, home);
    }
    return self->lock != NULL ? g_steal_pointer(&self) : NULL;
}

GPtrArray *
eb_selftest_scratch_take_dead(const char *state_dir, GPtrArray *homes)
{
    GPtrArray *dead = g_ptr_array_new_with_free_func((GDestroyNotify)eb_selftest_scratch_free);
    g_autofree char *parent = g_build_filename(state_dir, EB_TRY_DIR, NULL);
    g_autoptr(GDir) dir = g_dir_open(parent, 0, NULL);
    const char *name;

    while (dir != NULL && dead->len < MAX_DEAD && (name = g_dir_read_name(dir)) != NULL) {
        EbSelftestScratch *found = g_str_has_prefix(name, "selftest-") ? take_dead(parent, name, homes) : NULL;
        if (found != NULL)
            g_ptr_array_add(dead, found);
    }
    return dead;
}

const char *
eb_selftest_scratch_get_dir(EbSelftestScratch *self)
{
    return self->dir;
}

char *
eb_selftest_scratch_get_root(EbSelftestScratch *self, guint number)
{
    g_autofree char *name = g_strdup_printf("w%u", number);
    return g_build_filename(self->dir, name, NULL);
}

char *
eb_selftest_scratch_get_config(EbSelftestScratch *self, guint number)
{
    g_autofree char *name = g_strdup_printf("w%u.toml", number);
    return g_build_filename(self->dir, name, NULL);
}

gboolean
eb_selftest_scratch_remove(EbSelftestScratch *self, GError **error)
{
    g_autofree char *name = g_path_get_basename(self->dir);
    int parent = open(self->parent, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    guint64 left = 0;

    if (parent < 0)
        return fail(error, self->parent);
    gboolean good = eb_tree_remove_at(parent, name, REMOVE_DEADLINE_MS, &left, error);
    close(parent);
    g_clear_pointer(&self->lock, eb_dir_lock_release);
    if (good && left > 0) {
        eb_set_error(error, EB_ERROR_FAILED, "selftest.left",
                     "%" G_GUINT64_FORMAT " entries of %s could not be removed (sudo errand-box sessions prune)", left,
                     self->dir);
        return FALSE;
    }
    return good;
}

void
eb_selftest_scratch_free(EbSelftestScratch *self)
{
    if (self == NULL)
        return;
    eb_dir_lock_release(self->lock);
    g_free(self->parent);
    g_free(self->dir);
    g_free(self);
}
