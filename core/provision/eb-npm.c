/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-npm.h"

#include "core/config/eb-pins.h"
#include "core/provision/eb-deadline.h"
#include "core/provision/eb-run.h"

#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_OUTPUT (4 * 1024 * 1024)
#define MAX_SHOWN 500 /* of stderr, in an error message */
#define CONFIG_DEADLINE_MS 60000

static void
end_with_parent(gpointer data)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
}

static GSubprocess *
spawn(const char *const *arguments, const char *dir, int errors, GError **error)
{
    g_autoptr(GSubprocessLauncher) launcher = g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDOUT_PIPE);
    g_autoptr(GPtrArray) words = g_ptr_array_new();
    g_autofree char *program = eb_run_find("npm");

    if (program == NULL) {
        eb_set_error(error, EB_ERROR_NOT_FOUND, "pins.npm",
                     "npm is not installed, and says which registry packages come from (apt install npm)");
        return NULL;
    }
    g_ptr_array_add(words, program);
    for (gsize i = 0; arguments[i] != NULL; i++)
        g_ptr_array_add(words, (gpointer)arguments[i]);
    g_ptr_array_add(words, NULL);
    g_subprocess_launcher_set_cwd(launcher, dir);
    g_subprocess_launcher_set_child_setup(launcher, end_with_parent, NULL, NULL);
    g_subprocess_launcher_take_stdin_fd(launcher, open("/dev/null", O_RDONLY | O_CLOEXEC));
    g_subprocess_launcher_take_stderr_fd(launcher, fcntl(errors, F_DUPFD_CLOEXEC, 3));
    GSubprocess *process = g_subprocess_launcher_spawnv(launcher, (const char *const *)words->pdata, error);
    if (process == NULL)
        eb_error_convert(error, "pins.npm", NULL);
    return process;
}

/* The first lines on stderr, where npm says what is wrong; hints and the place of its log follow. */
static void
set_exit_error(GSubprocess *process, const char *verb, int errors, GError **error)
{
    char text[4096];
    gssize length = pread(errors, text, sizeof text, 0);
    g_autofree char *valid = g_utf8_make_valid(text, MAX(length, 0));
    g_auto(GStrv) lines = g_strsplit(valid, "\n", 7);

    for (char **line = lines; *line != NULL; line++)
        g_strstrip(*line);
    if (g_strv_length(lines) > 6)
        *lines[6] = '\0';
    g_autofree char *joined = g_strjoinv(" ", lines);
    g_autofree char *shown = eb_log_escape(g_strstrip(joined), -1, MAX_SHOWN);
    eb_set_error(error, EB_ERROR_FAILED, "pins.npm", "npm %s failed: %s", verb,
                 *shown != '\0' ? shown : "it printed nothing");
}

static gboolean
collect(GSubprocess *process, GCancellable *cancellable, GString *output, GError **error)
{
    GInputStream *stream = g_subprocess_get_stdout_pipe(process);
    char chunk[8192];

    for (;;) {
        gssize n = g_input_stream_read(stream, chunk, sizeof chunk, cancellable, error);
        if (n < 0)
            return FALSE;
        if (n == 0)
            return g_subprocess_wait(process, cancellable, error);
        if (output->len + (gsize)n > MAX_OUTPUT) {
            eb_set_error(error, EB_ERROR_PROTOCOL, "pins.npm", "npm printed more than %d bytes", MAX_OUTPUT);
            return FALSE;
        }
        g_string_append_len(output, chunk, n);
    }
}

static gboolean
run(const char *const *arguments, const char *dir, int errors, EbDeadline *deadline, GString *output, GError **error)
{
    g_autoptr(GSubprocess) process = spawn(arguments, dir, errors, error);
    GError *problem = NULL;

    if (process == NULL)
        return FALSE;
    if (!collect(process, eb_deadline_get_cancellable(deadline), output, &problem)) {
        g_subprocess_force_exit(process);
        g_subprocess_wait(process, NULL, NULL);
        if (eb_deadline_is_over(deadline)) {
            g_clear_error(&problem);
            eb_set_error(error, EB_ERROR_TIMEOUT, "pins.npm", "npm %s took too long", arguments[0]);
        } else {
            eb_error_convert(&problem, "pins.npm", NULL);
            g_propagate_error(error, problem);
        }
        return FALSE;
    }
    if (g_subprocess_get_successful(process))
        return TRUE;
    set_exit_error(process, arguments[0], errors, error);
    return FALSE;
}

gboolean
eb_npm_run(const char *const *arguments, const char *dir, guint deadline_ms, GCancellable *cancellable, char **output,
           GError **error)
{
    g_autoptr(EbDeadline) deadline = eb_deadline_new(cancellable, deadline_ms);
    g_autoptr(GString) text = g_string_new(NULL);
    int errors = memfd_create("npm-errors", MFD_CLOEXEC);

    if (errors < 0) {
        eb_set_error(error, EB_ERROR_FAILED, "pins.npm", "no memory for the errors of npm");
        return FALSE;
    }
    gboolean done = run(arguments, dir, errors, deadline, text, error);
    close(errors);
    if (done && output != NULL)
        *output = g_string_free(g_steal_pointer(&text), FALSE);
    return done;
}

void
eb_npm_registry_free(EbNpmRegistry *self)
{
    g_free(self->url);
    g_free(self->ca_file);
    g_free(self->proxy);
    g_free(self->no_proxy);
    g_hash_table_unref(self->scopes);
    g_free(self);
}

/* (transfer full) (nullable): with the slash at its end that makes names relative to it */
static char *
check_registry(const char *url, GError **error)
{
    g_autofree char *wrong = eb_pin_check_url(url);

    if (wrong == NULL)
        return g_str_has_suffix(url, "/") ? g_strdup(url) : g_strconcat(url, "/", NULL);
    g_autofree char *shown = eb_log_escape(url, -1, 300);
    eb_set_error(error, EB_ERROR_CONFIG, "pins.registry",
                 "npm is set to the registry \"%s\": %s (see: npm config get registry)", shown, wrong);
    return NULL;
}

EbNpmRegistry *
eb_npm_registry_parse(const char *output, GError **error)
{
    g_autoptr(EbNpmRegistry) self = g_new0(EbNpmRegistry, 1);
    g_auto(GStrv) lines = g_strsplit(output, "\n", -1);

    self->scopes = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    for (char **line = lines; *line != NULL; line++) {
        char *value = strchr(*line, '=');
        if (value == NULL)
            continue;
        *value++ = '\0';
        g_strstrip(value);
        g_strstrip(*line);
        if (*value == '\0' || strcmp(value, "undefined") == 0 || strcmp(value, "null") == 0)
            continue;
        char **plain = strcmp(*line, "cafile") == 0        ? &self->ca_file
                       : strcmp(*line, "https-proxy") == 0 ? &self->proxy
                       : strcmp(*line, "noproxy") == 0     ? &self->no_proxy
                                                           : NULL;
        if (plain != NULL) {
            g_free(*plain);
            *plain = g_strdup(value);
            continue;
        }
        gboolean scoped = **line == '@' && g_str_has_suffix(*line, ":registry");
        if (!scoped && strcmp(*line, "registry") != 0)
            continue;
        char *url = check_registry(value, error);
        if (url == NULL)
            return NULL;
        if (scoped) {
            g_hash_table_replace(self->scopes, g_strndup(*line, strlen(*line) - strlen(":registry")), url);
        } else {
            g_free(self->url);
            self->url = url;
        }
    }
    if (self->url != NULL)
        return g_steal_pointer(&self);
    eb_set_error(error, EB_ERROR_CONFIG, "pins.registry", "npm names no registry (see: npm config get registry)");
    return NULL;
}

EbNpmRegistry *
eb_npm_registry_read(const char *const *scopes, GCancellable *cancellable, GError **error)
{
    g_autoptr(GPtrArray) words = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *output = NULL;

    g_ptr_array_add(words, g_strdup("config"));
    g_ptr_array_add(words, g_strdup("get"));
    g_ptr_array_add(words, g_strdup("--no-update-notifier"));
    g_ptr_array_add(words, g_strdup("registry"));
    g_ptr_array_add(words, g_strdup("cafile"));
    g_ptr_array_add(words, g_strdup("https-proxy"));
    g_ptr_array_add(words, g_strdup("noproxy"));
    for (gsize i = 0; scopes[i] != NULL; i++)
        g_ptr_array_add(words, g_strconcat(scopes[i], ":registry", NULL));
    g_ptr_array_add(words, NULL);
    if (!eb_npm_run((const char *const *)words->pdata, "/", CONFIG_DEADLINE_MS, cancellable, &output, error))
        return NULL;
    return eb_npm_registry_parse(output, error);
}

char *
eb_npm_registry_archive_url(const EbNpmRegistry *self, const char *name, const char *version)
{
    const char *slash = strchr(name, '/');
    g_autofree char *scope = slash != NULL ? g_strndup(name, (gsize)(slash - name)) : NULL;
    const char *own = scope != NULL ? g_hash_table_lookup(self->scopes, scope) : NULL;

    return g_strdup_printf("%s%s/-/%s-%s.tgz", own != NULL ? own : self->url, name, slash != NULL ? slash + 1 : name,
                           version);
}
