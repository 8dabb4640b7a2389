/* SPDX-License-Identifier: MIT */
/* What a session's people hear of its budget. */
#define G_LOG_DOMAIN "eb-session"
#include "core/session/eb-session-private.h"

static void
on_exhausted(EbBudgetDesk *desk, const char *id, const char *text, gpointer user_data)
{
    EbSession *self = EB_SESSION(user_data);

    if (!self->ending && g_str_equal(id, self->record->id))
        eb_session_notice(self, text);
}

void
eb_session_listen_budget(EbSession *self)
{
    if (self->parts->budget != NULL)
        g_signal_connect_object(self->parts->budget, "exhausted", G_CALLBACK(on_exhausted), self, 0);
}

void
eb_session_add_budget(EbSession *self, JsonObject *status)
{
    const EbSessionRecord *record = self->record;
    const char *person =
        self->prompt != NULL && self->prompt->author_id != NULL ? self->prompt->author_id : record->owner;

    if (self->parts->budget == NULL)
        return;
    JsonObject *budget = eb_budget_desk_to_json(self->parts->budget, record->id, record->turns, person);
    g_autofree char *text = eb_budget_json_to_text(budget);
    json_object_set_object_member(status, "budget", budget);
    json_object_set_string_member(status, "budget_text", text);
}
