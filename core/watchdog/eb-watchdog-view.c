/* SPDX-License-Identifier: MIT */
#include "core/watchdog/eb-watchdog-view.h"

#include <unistd.h>

static gint64
seconds_since(const EbWatchdogView *self, gint64 since_us)
{
    return MAX(self->now_us - since_us, 0) / G_USEC_PER_SEC;
}

static char *
process(const EbWatchdogView *self)
{
    return self->rules->service_pid != 0 ? g_strdup_printf(" (process %" G_GINT64_FORMAT ")", self->rules->service_pid)
                                         : g_strdup("");
}

static char *
hangs_text(const EbWatchdogView *self)
{
    const EbWatchdogRules *rules = self->rules;
    g_autofree char *who = process(self);
    gboolean silent = rules->quiet_since_us == 0;
    const char *then = ": it is ended, and its supervisor starts it again";
    gint64 since = silent ? rules->silent_since_us : rules->quiet_since_us;

    if (self->once)
        then = "";
    else if (eb_watchdog_rules_gave_up(rules, self->now_us))
        then = ": it was ended three times within the hour and is left alone now: errand-box down, then errand-box up";
    else if (!rules->limits.supervised)
        then = ": nothing would start it again, so it is left alone: errand-box down, then errand-box up";
    return g_strdup_printf("the service%s %s for %" G_GINT64_FORMAT " s%s%s%s", who,
                           silent ? "takes connections and does not answer" : "holds its lock and takes no connections",
                           seconds_since(self, since != 0 ? since : rules->service_since_us),
                           self->process_detail != NULL ? ", " : "",
                           self->process_detail != NULL ? self->process_detail : "", then);
}

char *
eb_watchdog_view_service(const EbWatchdogView *self)
{
    g_autofree char *who = process(self);

    switch (self->rules->service) {
    case EB_WATCHDOG_SERVICE_UP:
        return g_strdup_printf("the service%s answers", who);
    case EB_WATCHDOG_SERVICE_STARTING:
        return g_strdup_printf("the service%s is starting", who);
    case EB_WATCHDOG_SERVICE_ENDING:
        return g_strdup_printf("the service%s is ending", who);
    case EB_WATCHDOG_SERVICE_HANGS:
        return hangs_text(self);
    case EB_WATCHDOG_SERVICE_DEAD:
        return g_strdup("the service died; its guests are ended when it does not come back (errand-box up)");
    case EB_WATCHDOG_SERVICE_STOPPED:
        return g_strdup("the service does not run (errand-box up)");
    case EB_WATCHDOG_SERVICE_UNKNOWN:
        break;
    }
    return g_strdup("how the service is cannot be seen");
}

char *
eb_watchdog_view_backend(const EbWatchdogView *self)
{
    const EbWatchdogRules *rules = self->rules;
    gint64 seconds = seconds_since(self, rules->backend_since_us);
    const char *colon = self->remedy != NULL ? ": " : "";
    const char *remedy = self->remedy != NULL ? self->remedy : "";

    switch (rules->backend) {
    case EB_WATCHDOG_BACKEND_OK:
        return g_strdup("the container backend answers");
    case EB_WATCHDOG_BACKEND_WEDGED:
        return g_strdup_printf("the container backend takes connections and has not answered for %" G_GINT64_FORMAT
                               " s%s%s",
                               seconds, colon, remedy);
    case EB_WATCHDOG_BACKEND_DOWN:
        return g_strdup_printf("the container backend cannot be reached for %" G_GINT64_FORMAT " s%s%s%s%s%s", seconds,
                               self->backend_detail != NULL ? " (" : "",
                               self->backend_detail != NULL ? self->backend_detail : "",
                               self->backend_detail != NULL ? ")" : "", colon, remedy);
    case EB_WATCHDOG_BACKEND_UNKNOWN:
        break;
    }
    return g_strdup("the container backend was not seen yet");
}

static JsonObject *
part(const char *state, gint64 since_s, const char *detail)
{
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "state", state);
    json_object_set_int_member(object, "since_s", since_s);
    json_object_set_string_member(object, "detail", detail);
    return object;
}

static JsonNode *
node_of(JsonObject *object)
{
    JsonNode *node = json_node_new(JSON_NODE_OBJECT);

    json_node_take_object(node, object);
    return node;
}

JsonNode *
eb_watchdog_view_json(const EbWatchdogView *self, GDateTime *at)
{
    const EbWatchdogRules *rules = self->rules;
    g_autofree char *when = g_date_time_format(at, "%Y-%m-%dT%H:%M:%SZ");
    g_autofree char *service_text = eb_watchdog_view_service(self);
    g_autofree char *backend_text = eb_watchdog_view_backend(self);
    JsonObject *object = json_object_new();
    JsonObject *service = part(eb_watchdog_service_state_to_string(rules->service),
                               seconds_since(self, rules->service_since_us), service_text);
    JsonObject *backend = part(eb_watchdog_backend_state_to_string(rules->backend),
                               seconds_since(self, rules->backend_since_us), backend_text);

    if (rules->service_pid != 0)
        json_object_set_int_member(service, "pid", rules->service_pid);
    json_object_set_int_member(object, "schema", 1);
    json_object_set_string_member(object, "at", when);
    json_object_set_int_member(object, "pid", getpid());
    json_object_set_object_member(object, "service", service);
    json_object_set_object_member(object, "backend", backend);
    json_object_set_int_member(object, "guests_ended", self->guests_ended);
    json_object_set_int_member(object, "restarts", self->services_ended);
    if (self->last_error != NULL)
        json_object_set_string_member(object, "last_error", self->last_error);
    else
        json_object_set_null_member(object, "last_error");
    return node_of(object);
}

JsonNode *
eb_watchdog_view_report(const EbWatchdogView *self, const char *target)
{
    g_autofree char *detail = eb_watchdog_view_backend(self);
    JsonObject *object = json_object_new();

    json_object_set_string_member(object, "target", target);
    json_object_set_string_member(object, "state", eb_watchdog_backend_state_to_string(self->rules->backend));
    json_object_set_string_member(object, "detail", detail);
    json_object_set_int_member(object, "seconds", seconds_since(self, self->rules->backend_since_us));
    return node_of(object);
}
