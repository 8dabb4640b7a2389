/* SPDX-License-Identifier: MIT */
/* What supervisors print about a service, read. */
#include <signal.h>
#include <string.h>

#include "core/provision/eb-supervisor.h"

/* si_code of a child's end, which systemd prints as it is. */
#define ENDED_BY_EXIT 1
#define ENDED_BY_SIGNAL 2
#define ENDED_BY_SIGNAL_CORE 3

#define CONFIG_VARIABLE "ERRAND_BOX_CONFIG="

const char *
eb_unit_state_to_string(EbUnitState state)
{
    static const char *const NAMES[] = {"missing", "down", "starting", "ready", "stopping", "waiting", "failed"};

    return NAMES[state];
}

void
eb_unit_status_clear(EbUnitStatus *self)
{
    g_clear_pointer(&self->text, g_free);
    g_clear_pointer(&self->config, g_free);
    *self = (EbUnitStatus){.exit_code = -1};
}

/* --- systemd --- */

/* (transfer none) (nullable): the value of @name in lines of NAME=VALUE */
static const char *
property(char **lines, const char *name)
{
    gsize length = strlen(name);

    for (char **line = lines; *line != NULL; line++)
        if (strncmp(*line, name, length) == 0 && (*line)[length] == '=')
            return *line + length + 1;
    return NULL;
}

static guint64
number(char **lines, const char *name, guint64 max)
{
    const char *text = property(lines, name);
    guint64 value = 0;

    if (text != NULL && *text == '@') /* --timestamp=unix */
        text++;
    return text != NULL && g_ascii_string_to_unsigned(text, 10, 0, max, &value, NULL) ? value : 0;
}

static EbUnitState
systemd_state(const char *active, const char *sub)
{
    if (strcmp(active, "active") == 0 || strcmp(active, "reloading") == 0)
        return EB_UNIT_READY;
    if (strcmp(active, "activating") == 0)
        return g_strcmp0(sub, "auto-restart") == 0 ? EB_UNIT_WAITING : EB_UNIT_STARTING;
    if (strcmp(active, "deactivating") == 0)
        return EB_UNIT_STOPPING;
    return strcmp(active, "failed") == 0 ? EB_UNIT_FAILED : EB_UNIT_DOWN;
}

/* Words as systemd prints them: one with blanks stands in quotes as a whole. */
static char *
config_of_environment(const char *text)
{
    g_auto(GStrv) words = NULL;
    int n;

    if (text == NULL || !g_shell_parse_argv(text, &n, &words, NULL))
        return NULL;
    for (int i = 0; i < n; i++)
        if (g_str_has_prefix(words[i], CONFIG_VARIABLE) && words[i][strlen(CONFIG_VARIABLE)] != '\0')
            return g_strdup(words[i] + strlen(CONFIG_VARIABLE));
    return NULL;
}

gboolean
eb_unit_parse_systemd(const char *text, EbUnitStatus *status, GError **error)
{
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    const char *load = property(lines, "LoadState");
    const char *active = property(lines, "ActiveState");
    const char *enabled = property(lines, "UnitFileState");
    const char *said = property(lines, "StatusText");
    guint64 code = number(lines, "ExecMainCode", G_MAXINT);
    int value = (int)number(lines, "ExecMainStatus", 255);

    *status = (EbUnitStatus){.exit_code = -1};
    if (load == NULL || active == NULL) {
        eb_set_error(error, EB_ERROR_PROTOCOL, "supervisor.answer", "systemctl show told no %s",
                     load == NULL ? "LoadState" : "ActiveState");
        return FALSE;
    }
    if (strcmp(load, "not-found") == 0)
        return TRUE;
    status->state = systemd_state(active, property(lines, "SubState"));
    status->pid = (pid_t)number(lines, "MainPID", G_MAXINT);
    status->since_s = (gint64)number(lines, "StateChangeTimestamp", G_MAXINT64);
    if (code == ENDED_BY_EXIT)
        status->exit_code = value;
    else if (code == ENDED_BY_SIGNAL || code == ENDED_BY_SIGNAL_CORE)
        status->exit_signal = value;
    status->restarts = (guint)number(lines, "NRestarts", G_MAXUINT);
    status->enabled = enabled != NULL && g_str_has_prefix(enabled, "enabled");
    status->text = said != NULL && *said != '\0' ? g_strdup(said) : NULL;
    status->config = config_of_environment(property(lines, "Environment"));
    return TRUE;
}

/* --- s6 --- */

static gboolean
parse_bool(const char *word, gboolean *value)
{
    *value = strcmp(word, "true") == 0;
    return *value || strcmp(word, "false") == 0;
}

static gboolean
parse_number(const char *word, gint64 *value)
{
    return g_ascii_string_to_signed(word, 10, -1, G_MAXINT32, value, NULL);
}

static EbUnitState
s6_state(gboolean up, gboolean wanted, gboolean ready, gint64 exit_code, gint64 signal_number)
{
    if (up)
        return !wanted ? EB_UNIT_STOPPING : ready ? EB_UNIT_READY : EB_UNIT_STARTING;
    if (wanted)
        return EB_UNIT_WAITING;
    /* A service that had not yet come to catch it ends by the signal it is stopped with. */
    return exit_code > 0 || (signal_number > 0 && signal_number != SIGTERM) ? EB_UNIT_FAILED : EB_UNIT_DOWN;
}

gboolean
eb_unit_parse_s6(const char *text, gboolean notifies, gint64 now_s, EbUnitStatus *status, GError **error)
{
    g_autofree char *line = g_strchomp(g_strdup(text));
    g_auto(GStrv) words = g_strsplit(line, " ", -1);
    gboolean up, wanted, normal, ready;
    gint64 pid, exit_code, signal_number, seconds;

    *status = (EbUnitStatus){.exit_code = -1};
    if (g_strv_length(words) != 8 || !parse_bool(words[0], &up) || !parse_bool(words[1], &wanted) ||
        !parse_bool(words[2], &normal) || !parse_bool(words[3], &ready) || !parse_number(words[4], &pid) ||
        !parse_number(words[5], &exit_code) || !parse_number(words[6], &signal_number) ||
        !parse_number(words[7], &seconds)) {
        g_autofree char *shown = eb_log_escape(line, -1, 120);
        eb_set_error(error, EB_ERROR_PROTOCOL, "supervisor.answer", "s6-svstat answered \"%s\"", shown);
        return FALSE;
    }
    status->state = s6_state(up, wanted, ready || !notifies, exit_code, signal_number);
    status->pid = up && pid > 0 ? (pid_t)pid : 0;
    status->since_s = seconds >= 0 ? now_s - seconds : 0;
    if (!up) {
        status->exit_code = (int)exit_code;
        status->exit_signal = signal_number > 0 ? (int)signal_number : 0;
    }
    status->enabled = normal;
    return TRUE;
}
