/* SPDX-License-Identifier: MIT */
#include "core/cli/eb-status-screen.h"

#include <string.h>

#define LABEL 11
/* Lines that one thing may take, and things of one kind. */
#define MAX_WRAP 2
#define MAX_CHATS 3
#define MAX_POOLS 2
#define MAX_ERRORS 3

typedef struct {
    GString *text;
    guint lines;
    gint64 now_s;
} Screen;

char *
eb_status_duration(gint64 seconds)
{
    if (seconds < 0)
        seconds = 0;
    if (seconds < 120)
        return g_strdup_printf("%" G_GINT64_FORMAT " s", seconds);
    if (seconds < 2 * 3600)
        return g_strdup_printf("%" G_GINT64_FORMAT " min", seconds / 60);
    if (seconds < 2 * 86400)
        return g_strdup_printf("%" G_GINT64_FORMAT " h %" G_GINT64_FORMAT " min", seconds / 3600, seconds / 60 % 60);
    return g_strdup_printf("%" G_GINT64_FORMAT " d %" G_GINT64_FORMAT " h", seconds / 86400, seconds / 3600 % 24);
}

/* Columns that a terminal gives @c. */
static glong
width(gunichar c)
{
    return g_unichar_iszerowidth(c) ? 0 : g_unichar_iswide(c) ? 2 : 1;
}

/* Where @text is to be cut so that it fits into @columns: the end, or a blank when there is one in the second half. */
static const char *
break_at(const char *text, glong columns)
{
    const char *blank = NULL;
    glong used = 0;

    for (const char *at = text; *at != '\0'; at = g_utf8_next_char(at)) {
        if (*at == ' ' && used > columns / 2)
            blank = at;
        used += width(g_utf8_get_char(at));
        if (used > columns)
            return blank != NULL ? blank : at;
    }
    return text + strlen(text);
}

static void
add_line(Screen *screen, const char *label, const char *text, const char *end, gboolean cut)
{
    g_string_append_printf(screen->text, "%-*.*s%.*s%s\n", LABEL, LABEL - 1, label, (int)(end - text), text,
                           cut ? "…" : "");
    screen->lines++;
}

static void G_GNUC_PRINTF(3, 4) add(Screen *screen, const char *label, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    g_autofree char *whole = g_strdup_vprintf(format, args);
    va_end(args);
    /* Most of it comes from elsewhere. */
    g_autofree char *clean = eb_log_escape(whole, -1, 1024);
    const char *at = clean;
    for (guint wrapped = 0; wrapped < MAX_WRAP && screen->lines < EB_STATUS_LINES; wrapped++) {
        gboolean last = wrapped + 1 == MAX_WRAP || screen->lines + 1 == EB_STATUS_LINES;
        const char *end = break_at(at, EB_STATUS_COLUMNS - LABEL);
        gboolean more = *end != '\0';
        if (last && more)
            end = break_at(at, EB_STATUS_COLUMNS - LABEL - 1);
        add_line(screen, wrapped == 0 ? label : "", at, end, last && more);
        if (!more)
            return;
        at = end + strspn(end, " ");
    }
}

static const char *
text_or(JsonObject *object, const char *member, const char *otherwise)
{
    const char *text = eb_json_get_string(object, member);

    return text != NULL ? text : otherwise;
}

static gint64
age_of(const Screen *screen, const char *when)
{
    g_autoptr(GDateTime) moment = when != NULL ? g_date_time_new_from_iso8601(when, NULL) : NULL;

    return moment != NULL ? screen->now_s - g_date_time_to_unix(moment) : 0;
}

/* --- what is shown, from top to bottom --- */

static void
add_service(Screen *screen, JsonObject *status)
{
    JsonObject *supervisor = eb_json_get_object(status, "supervisor");
    const char *kind = text_or(supervisor, "kind", "none");
    const char *instance = eb_json_get_string(status, "instance");
    const char *under = eb_json_get_bool(supervisor, "ours", FALSE)       ? kind
                        : eb_json_get_string(supervisor, "error") != NULL ? eb_json_get_string(supervisor, "error")
                                                                          : "in the foreground";
    g_autofree char *up = eb_status_duration(eb_json_get_int(status, "uptime_s", 0));

    add(screen, "service", "running for %s, version %s, pid %" G_GINT64_FORMAT "%s%s, %s", up,
        text_or(status, "version", "unknown"), eb_json_get_int(status, "pid", 0), instance != NULL ? ", instance " : "",
        instance != NULL ? instance : "", under);
}

static void
add_down(Screen *screen, JsonObject *status)
{
    JsonObject *supervisor = eb_json_get_object(status, "supervisor");
    const char *why = eb_json_get_string(status, "why");
    const char *means = eb_json_get_string(supervisor, "exit_means");
    const char *since = eb_json_get_string(supervisor, "since");
    g_autofree char *ago = eb_status_duration(age_of(screen, since));

    add(screen, "service", "not running: %s", why != NULL ? why : "nobody started it");
    if (eb_json_get_bool(supervisor, "ours", FALSE))
        add(screen, text_or(supervisor, "kind", "supervisor"), "%s%s%s%s%s", text_or(supervisor, "state", "unknown"),
            since != NULL ? " for " : "", since != NULL ? ago : "", means != NULL ? "; " : "",
            means != NULL ? means : "");
    if (eb_json_get_string(status, "last_error") != NULL)
        add(screen, "last error", "%s", eb_json_get_string(status, "last_error"));
    if (eb_json_get_string(status, "log") != NULL)
        add(screen, "log", "%s", eb_json_get_string(status, "log"));
    add(screen, "next", "%s", text_or(status, "next", "errand-box up"));
}

static void
add_work(Screen *screen, JsonObject *status)
{
    const char *hold = eb_json_get_string(eb_json_get_object(status, "health"), "hold");

    add(screen, "sessions",
        "%" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " live, %" G_GINT64_FORMAT " idle, %" G_GINT64_FORMAT
        " known; %" G_GINT64_FORMAT " of %" G_GINT64_FORMAT " turns at work",
        eb_json_get_int(status, "live", 0), eb_json_get_int(status, "max_live", 0), eb_json_get_int(status, "idle", 0),
        eb_json_get_int(status, "known", 0), eb_json_get_int(status, "turns", 0),
        eb_json_get_int(status, "max_turns", 0));
    if (eb_json_get_string(status, "budget_text") != NULL)
        add(screen, "used", "%s", eb_json_get_string(status, "budget_text"));
    add(screen, "queue", "%" G_GINT64_FORMAT " sessions and %" G_GINT64_FORMAT " turns waiting",
        eb_json_get_int(status, "waiting_sessions", 0), eb_json_get_int(status, "waiting_turns", 0));
    if (hold != NULL)
        add(screen, "on hold", "no new sessions: %s", hold);
}

static void
add_chats(Screen *screen, JsonObject *status)
{
    JsonArray *list = eb_json_get_array(status, "transports");
    guint n = list != NULL ? json_array_get_length(list) : 0;

    for (guint i = 0, shown = 0; i < n && shown < MAX_CHATS; i++) {
        JsonObject *transport = eb_json_array_object(list, i);
        const char *detail = eb_json_get_string(transport, "detail");
        g_autofree char *since = eb_status_duration(eb_json_get_int(transport, "seconds", 0));
        if (g_strcmp0(eb_json_get_string(transport, "state"), "quiet") == 0)
            continue;
        add(screen, "chat", "%s: %s%s%s (for %s)", text_or(transport, "name", "?"), text_or(transport, "state", "?"),
            detail != NULL ? ": " : "", detail != NULL ? detail : "", since);
        shown++;
    }
}

static void
add_backend(Screen *screen, JsonObject *status)
{
    JsonObject *backend = eb_json_get_object(status, "backend");
    JsonArray *pools = eb_json_get_array(status, "pools");
    guint n = pools != NULL ? json_array_get_length(pools) : 0;

    if (backend == NULL)
        return;
    if (eb_json_get_bool(backend, "answers", FALSE))
        add(screen, text_or(backend, "name", "backend"), "answers in %" G_GINT64_FORMAT " ms, version %s",
            eb_json_get_int(backend, "ms", 0), text_or(backend, "version", "unknown"));
    else
        add(screen, text_or(backend, "name", "backend"), "%s",
            text_or(backend, "error", "not on this host, and not asked"));
    for (guint i = 0; i < MIN(n, MAX_POOLS); i++) {
        JsonObject *pool = eb_json_array_object(pools, i);
        g_autofree char *used =
            g_format_size_full((guint64)MAX(eb_json_get_int(pool, "used", 0), 0), G_FORMAT_SIZE_IEC_UNITS);
        g_autofree char *total =
            g_format_size_full((guint64)MAX(eb_json_get_int(pool, "total", 0), 0), G_FORMAT_SIZE_IEC_UNITS);
        add(screen, "pool", "%s (%s): %s of %s used", text_or(pool, "name", "?"), text_or(pool, "driver", "?"), used,
            total);
    }
}

/* (transfer full): ids with @status, those accepted or the others; "" when there are none */
static char *
join_ids(JsonArray *checks, const char *status, gboolean accepted)
{
    g_autoptr(GString) text = g_string_new(NULL);

    for (guint i = 0; checks != NULL && i < json_array_get_length(checks); i++) {
        JsonObject *check = eb_json_array_object(checks, i);
        const char *id = eb_json_get_string(check, "id");
        if (id == NULL || g_strcmp0(eb_json_get_string(check, "status"), status) != 0 ||
            eb_json_get_bool(check, "accepted", FALSE) != accepted)
            continue;
        g_string_append_printf(text, "%s%s", text->len > 0 ? " " : "", id);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

static void
add_health(Screen *screen, JsonObject *status)
{
    JsonArray *checks = eb_json_get_array(eb_json_get_object(status, "health"), "checks");
    const char *problem = eb_json_get_string(eb_json_get_object(status, "health"), "doctor_error");
    g_autofree char *failing = join_ids(checks, "fail", FALSE);
    g_autofree char *open = join_ids(checks, "degraded", FALSE);
    g_autofree char *accepted = join_ids(checks, "degraded", TRUE);

    if (checks == NULL)
        return;
    if (problem != NULL) {
        add(screen, "doctor", "%s", problem);
        return;
    }
    if (*failing != '\0')
        add(screen, "failing", "%s (errand-box doctor)", failing);
    if (*open == '\0' && *accepted == '\0')
        add(screen, "degraded", "nothing");
    else
        add(screen, "degraded", "%s%s%s%s%s", open, *open != '\0' && *accepted != '\0' ? "; " : "", accepted,
            *accepted != '\0' ? " (accepted)" : "", *open != '\0' ? " (errand-box doctor)" : "");
}

static void
add_watchdog(Screen *screen, JsonObject *status)
{
    JsonObject *watchdog = eb_json_get_object(status, "watchdog");
    g_autofree char *ago = eb_status_duration(age_of(screen, eb_json_get_string(watchdog, "at")));

    if (watchdog == NULL || !eb_json_get_bool(watchdog, "running", FALSE)) {
        add(screen, "watchdog", "not running");
        return;
    }
    add(screen, "watchdog", "running; it saw %s ago: service %s, %s %s", ago,
        text_or(eb_json_get_object(watchdog, "service"), "state", "unknown"),
        text_or(eb_json_get_object(status, "backend"), "name", "backend"),
        text_or(eb_json_get_object(watchdog, "backend"), "state", "unknown"));
}

static void
add_errors(Screen *screen, JsonObject *status)
{
    JsonArray *errors = eb_json_get_array(status, "last_errors");
    guint n = errors != NULL ? json_array_get_length(errors) : 0;

    for (guint i = n > MAX_ERRORS ? n - MAX_ERRORS : 0; i < n; i++) {
        JsonNode *node = json_array_get_element(errors, i);
        if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_string(node) != NULL)
            add(screen, "error", "%s", json_node_get_string(node));
    }
}

char *
eb_status_screen(JsonObject *status, gint64 now_s)
{
    Screen screen = {.text = g_string_new(NULL), .now_s = now_s};

    if (eb_json_get_bool(status, "running", FALSE)) {
        add_service(&screen, status);
        if (eb_json_get_string(status, "why") != NULL)
            add(&screen, "", "%s", eb_json_get_string(status, "why"));
        add_work(&screen, status);
        add_chats(&screen, status);
    } else {
        add_down(&screen, status);
    }
    add_backend(&screen, status);
    add_watchdog(&screen, status);
    add_health(&screen, status);
    add_errors(&screen, status);
    return g_string_free(screen.text, FALSE);
}
