/* SPDX-License-Identifier: MIT */
#include "doctor-real.h"

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

EbTestIncusd *incusd;
GPtrArray *checks;
char *state_dir;

/* --- asking one check --- */

/* KEY, VALUE pairs lie over what describes the daemon. */
static EbConfigSection *
make_settings(va_list pairs)
{
    EbConfigSection *settings = eb_config_section_new("doctor");
    g_autofree char *daemon_dir = g_build_filename(incusd->dir, "d", NULL);
    g_autofree char *account = g_strdup_printf("eb-test-%u", (guint)incusd->uid);
    const char *const base[][2] = {
        {"daemon.dir", daemon_dir},
        {"daemon.socket", incusd->socket},
        {"backend.socket", incusd->socket},
        {"backend.project", incusd->project},
        {"backend.pool", incusd->pool},
        {"backend.image", incusd->image},
        {"account", account},
        {"state_dir", incusd->dir},
        {"image.recipe", "test"},
    };
    const char *key;

    for (guint i = 0; i < G_N_ELEMENTS(base); i++)
        eb_config_section_set(settings, base[i][0], g_variant_new_string(base[i][1]), "test", 1);
    while ((key = va_arg(pairs, const char *)) != NULL)
        eb_config_section_set(settings, key, g_variant_new_string(va_arg(pairs, const char *)), "test", 1);
    return settings;
}

static EbCheckResult *
ask(const char *id, EbConfigSection *settings)
{
    g_autoptr(EbHost) host = eb_host_new_real();

    for (guint i = 0; i < checks->len; i++)
        if (strcmp(eb_doctor_check_get_info(checks->pdata[i])->id, id) == 0)
            return eb_doctor_check_run(checks->pdata[i], host, settings, NULL);
    g_error("no check %s", id);
}

void
judge(const char *id, const EbCheckResult *result, EbCheckStatus status, const char *text)
{
    g_test_message("%s: %s: %s", id, eb_check_status_to_string(result->status), result->observed);
    if (result->status != status || (text != NULL && strstr(result->observed, text) == NULL))
        g_error("%s is not %s (%s): %s: %s", id, eb_check_status_to_string(status), text != NULL ? text : "",
                eb_check_status_to_string(result->status), result->observed);
}

void
expect(const char *id, EbCheckStatus status, const char *text, ...)
{
    g_autoptr(EbConfigSection) settings = NULL;
    g_autoptr(EbCheckResult) result = NULL;
    va_list pairs;

    va_start(pairs, text);
    settings = make_settings(pairs);
    va_end(pairs);
    result = ask(id, settings);
    judge(id, result, status, text);
}

void
expect_in_child(Prepare prepare, gpointer data, const char *id, EbCheckStatus status, const char *text, ...)
{
    g_autoptr(EbConfigSection) settings = NULL;
    va_list pairs;
    int code = 0;
    pid_t pid;

    va_start(pairs, text);
    settings = make_settings(pairs);
    va_end(pairs);
    pid = fork();
    if (pid == 0) {
        g_autoptr(EbCheckResult) result = NULL;
        if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
            g_error("no mounts of its own: %s", g_strerror(errno));
        prepare(data);
        result = ask(id, settings);
        if (result->status != status || (text != NULL && strstr(result->observed, text) == NULL))
            g_printerr("# %s: %s: %s\n", id, eb_check_status_to_string(result->status), result->observed);
        else
            _exit(0);
        _exit(1);
    }
    g_assert_cmpint(waitpid(pid, &code, 0), ==, pid);
    if (code != 0)
        g_error("%s is not %s in its child (%d)", id, eb_check_status_to_string(status), code);
}

static void
bind_over(const char *from, const char *to)
{
    if (mount(from, to, NULL, MS_BIND, NULL) != 0)
        g_error("cannot mount %s on %s: %s", from, to, g_strerror(errno));
}

void
put_over(const char *to, const char *text)
{
    g_autofree char *dir = eb_test_temp_dir("over");
    g_autofree char *file = g_build_filename(dir, "file", NULL);

    eb_test_write_file(file, text);
    bind_over(file, to);
    /* The mount keeps the file; this process ends without taking its directories along. */
    eb_test_remove_tree(dir);
}
