/* SPDX-License-Identifier: MIT */
/* What a session's broker tells, and which hosts it is told. A broker talks to a guest: what it says is not trusted. */
#define G_LOG_DOMAIN "eb-session"
#include "core/chat/eb-roles.h"
#include "core/session/eb-guest-rules.h"
#include "core/session/eb-host-rules.h"
#include "core/session/eb-session-private.h"

/* Between two notices of the same trouble, and so between two mentions of operators. */
#define TELL_AGAIN (15 * 60 * G_USEC_PER_SEC)
#define MAX_NOTIFIED 10

/* --- hosts --- */

void
eb_session_set_once(EbSession *self, GPtrArray *once)
{
    g_return_if_fail(EB_IS_SESSION(self) && once != NULL);
    g_clear_pointer(&self->once, g_ptr_array_unref);
    self->once = g_ptr_array_ref(once);
}

void
eb_session_apply_hosts(EbSession *self)
{
    g_return_if_fail(EB_IS_SESSION(self));
    if (self->guest == NULL || self->guest->rules == NULL || self->ending)
        return;
    g_autoptr(GPtrArray) once = self->once != NULL ? g_ptr_array_ref(self->once) : eb_host_once_list_new();
    g_auto(GStrv) before = g_strdupv(self->guest->rules->allow);
    eb_host_rules_set(self->guest->rules, eb_config_get_session(self->parts->config), self->record->hosts, once);
    if (!g_strv_equal((const char *const *)before, (const char *const *)self->guest->rules->allow))
        eb_guest_tell_broker(self->guest);
}

static void
on_denied(GObject *broker, const char *host, guint port, const char *code, gpointer user_data)
{
    g_signal_emit_by_name(user_data, "host-refused", host, port, code);
}

/* --- providers --- */

static gboolean
is_due(gint64 *told_us)
{
    gint64 now_us = g_get_monotonic_time();
    if (*told_us != 0 && now_us - *told_us < TELL_AGAIN)
        return FALSE;
    *told_us = now_us;
    return TRUE;
}

static gboolean
is_provider_due(EbSession *self, const char *name)
{
    EbSessionAlarms *alarms = &self->alarms;
    for (guint i = 0; i < alarms->n_providers; i++)
        if (g_str_equal(alarms->providers[i].name, name))
            return is_due(&alarms->providers[i].told_us);
    if (alarms->n_providers == EB_SESSION_MAX_ALARMS)
        return FALSE;
    alarms->providers[alarms->n_providers].name = g_strdup(name);
    return is_due(&alarms->providers[alarms->n_providers++].told_us);
}

void
eb_session_clear_alarms(EbSession *self)
{
    for (guint i = 0; i < self->alarms.n_providers; i++)
        g_free(self->alarms.providers[i].name);
    self->alarms = (EbSessionAlarms){0};
}

static const EbProviderConfig *
find_provider(EbSession *self, const char *name)
{
    GPtrArray *providers = eb_config_get_providers(self->parts->config);
    for (guint i = 0; i < providers->len; i++)
        if (g_str_equal(((const EbProviderConfig *)providers->pdata[i])->name, name))
            return providers->pdata[i];
    return NULL;
}

void
eb_session_tell_operators(EbSession *self, const char *text)
{
    EbRedactSet *secrets = eb_session_get_secrets(self);
    g_autofree char *masked = eb_redact_set_mask(secrets, text, -1);
    EbChatPost *post = eb_chat_post_new(self->record->thread, EB_CHAT_POST_ERROR, masked);
    const EbChatPolicy *policy = self->policy;
    post->final = TRUE;
    for (guint i = 0; policy != NULL && policy->operators != NULL && policy->operators[i] != NULL; i++) {
        if (eb_role_of(policy, NULL, NULL, policy->operators[i]) < EB_ROLE_OPERATOR || i >= MAX_NOTIFIED)
            continue;
        if (post->notify_also == NULL)
            post->notify_also = g_ptr_array_new_with_free_func(g_free);
        g_ptr_array_add(post->notify_also, g_strdup(policy->operators[i]));
    }
    eb_session_post(self, post);
}

static void
on_provider_error(GObject *broker, const char *name, guint status, const char *what, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    const EbProviderConfig *provider = find_provider(self, name);
    if (provider == NULL || !is_provider_due(self, provider->name))
        return;
    g_autofree char *shown = eb_log_escape(what != NULL ? what : "", -1, 120);
    g_autofree char *text = NULL;
    if (status == 401 || status == 403)
        text =
            g_strdup_printf("the model provider %s refuses the key of this service (%u): an operator gives it another "
                            "one with: errand-box creds set %s",
                            provider->name, status, provider->key_name);
    else if (status == 0)
        text = g_strdup_printf("the model provider %s cannot be used just now: %s (an operator looks at its base_url, "
                               "and whether this host reaches that)",
                               provider->name, shown);
    else
        text = g_strdup_printf("the model provider %s answers %u: %s", provider->name, status, shown);
    eb_log_event(G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, text, "EB_SESSION", self->record->id, NULL);
    if (status == 401 || status == 403)
        eb_session_tell_operators(self, text);
    else
        eb_session_notice(self, text);
    g_signal_emit_by_name(self, "provider-failed", text);
}

/* --- the broker itself --- */

static void
on_call_refused(GObject *broker, const char *why, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    if (!is_due(&self->alarms.refused_us))
        return;
    g_autofree char *text =
        g_strdup_printf("the broker of session %s %s. Either the agent found a way into its broker, or "
                        "a library of this host was updated to one that errand-box does not know: look "
                        "at what the agent did and at what was updated; !stop ends the session",
                        self->record->id, why);
    eb_session_tell_operators(self, text);
}

static void
on_broker_died(GObject *broker, gboolean restarted, const char *why, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);
    g_autofree char *text = g_strdup_printf("the broker of session %s %s", self->record->id, why);
    eb_log_event(G_LOG_LEVEL_WARNING, G_LOG_DOMAIN, text, "EB_SESSION", self->record->id, "EB_REASON", why, NULL);
    if (!restarted)
        eb_session_notice(self,
                          "the broker of this session is gone: the agent reaches no model provider and no host any "
                          "more; !stop ends the session");
    else if (is_due(&self->alarms.died_us))
        eb_session_notice(self,
                          "the broker of this session ended and was replaced at once: connections that were open are "
                          "cut, and what the agent did over them may have failed");
}

void
eb_session_tell_degraded(EbSession *self)
{
    if (self->guest == NULL || !EB_IS_BROKER_CTL(self->guest->broker))
        return;
    const char *lacking = eb_broker_ctl_get_lacking(EB_BROKER_CTL(self->guest->broker));
    if (lacking == NULL)
        return;
    g_autofree char *shown = eb_log_escape(lacking, -1, 200);
    g_autofree char *text = g_strdup_printf("NOT ENFORCED ON THIS HOST: %s", shown);
    eb_session_notice(self, text);
}

void
eb_session_attach_broker(EbSession *self, EbGuest *guest)
{
    static const struct {
        const char *signal;
        GCallback handler;
    } handlers[] = {
        {"denied", G_CALLBACK(on_denied)},
        {"provider-error", G_CALLBACK(on_provider_error)},
        {"call-refused", G_CALLBACK(on_call_refused)},
        {"died", G_CALLBACK(on_broker_died)},
    };
    for (gsize i = 0; guest->broker != NULL && i < G_N_ELEMENTS(handlers); i++)
        if (g_signal_lookup(handlers[i].signal, G_OBJECT_TYPE(guest->broker)) != 0)
            g_signal_connect_object(guest->broker, handlers[i].signal, handlers[i].handler, self, 0);
}
