/* SPDX-License-Identifier: MIT */
/* What the service alone knows of its host and its books, for the doctor. */
#include "core/session/eb-session-manager-private.h"

#include "core/base/eb-json-members.h"
#include "core/state/eb-egress-store.h"

/* Models of which is said that they have no price. */
#define MAX_MODELS 64
#define KEPT_DAYS 30

typedef struct {
    EbEgressSurvey *survey;
    GPtrArray *models; /* (element-type utf8): provider and model, by turns */
} Facts;

static void
facts_free(gpointer data)
{
    Facts *facts = data;
    eb_egress_survey_free(facts->survey);
    if (facts->models != NULL)
        g_ptr_array_unref(facts->models);
    g_free(facts);
}

static GPtrArray *
read_models(sqlite3 *db, gint64 since_day, GError **error)
{
    g_autoptr(sqlite3_stmt) row = eb_store_prepare(
        db, "SELECT DISTINCT provider, model FROM usage WHERE day >= ? AND model != '' LIMIT 1000", error);
    g_autoptr(GPtrArray) models = g_ptr_array_new_with_free_func(g_free);
    int step;
    if (row == NULL)
        return NULL;
    sqlite3_bind_int64(row, 1, since_day);
    while ((step = sqlite3_step(row)) == SQLITE_ROW) {
        g_ptr_array_add(models, eb_store_column_dup(row, 0));
        g_ptr_array_add(models, eb_store_column_dup(row, 1));
    }
    if (step == SQLITE_DONE)
        return g_steal_pointer(&models);
    eb_store_set_error(error, db, "read what was used");
    return NULL;
}

static gpointer
gather(sqlite3 *db, gpointer data, GError **error)
{
    Facts *facts = g_new0(Facts, 1);
    facts->survey = eb_egress_store_survey(db, error);
    if (facts->survey != NULL)
        facts->models = read_models(db, *(gint64 *)data, error);
    if (facts->models != NULL)
        return facts;
    facts_free(facts);
    return NULL;
}

static JsonObject *
survey_json(const EbEgressSurvey *survey)
{
    JsonObject *object = json_object_new();
    JsonArray *broken = json_array_new();
    for (guint i = 0; i < survey->faults->len; i++) {
        const EbEgressFault *fault = survey->faults->pdata[i];
        JsonObject *one = json_object_new();
        json_object_set_string_member(one, "session", fault->session);
        json_object_set_int_member(one, "at", fault->at);
        json_object_set_string_member(one, "why", fault->why);
        json_array_add_object_element(broken, one);
    }
    json_object_set_int_member(object, "chains", survey->chains);
    json_object_set_int_member(object, "rows", survey->rows);
    json_object_set_int_member(object, "checked", survey->checked);
    json_object_set_array_member(object, "broken", broken);
    return object;
}

static JsonArray *
unpriced_json(EbBudgetDesk *desk, GPtrArray *models)
{
    JsonArray *array = json_array_new();
    for (guint i = 0; i + 1 < models->len && json_array_get_length(array) < MAX_MODELS; i += 2) {
        if (models->pdata[i] == NULL || models->pdata[i + 1] == NULL ||
            !eb_budget_desk_lacks_price(desk, models->pdata[i], models->pdata[i + 1]))
            continue;
        /* A model's name is what a guest asked for. */
        g_autofree char *shown = eb_log_escape(models->pdata[i + 1], -1, 96);
        JsonObject *one = json_object_new();
        json_object_set_string_member(one, "provider", models->pdata[i]);
        json_object_set_string_member(one, "model", shown);
        json_array_add_object_element(array, one);
    }
    return array;
}

static void
on_gathered(GObject *source, GAsyncResult *result, gpointer user_data)
{
    g_autoptr(GTask) task = G_TASK(user_data);
    EbSessionManager *self = g_task_get_source_object(task);
    GError *error = NULL;
    Facts *facts = eb_store_run_finish(EB_STORE(source), result, &error);
    if (facts == NULL) {
        g_task_return_error(task, error);
        return;
    }
    JsonObject *object = json_object_new();
    json_object_set_object_member(object, "audit", survey_json(facts->survey));
    json_object_set_array_member(object, "unpriced", unpriced_json(self->parts->budget, facts->models));
    facts_free(facts);
    g_task_return_pointer(task, object, (GDestroyNotify)json_object_unref);
}

gboolean
eb_session_manager_take_budget(EbSessionManager *self, EbConfig *config, GError **error)
{
    g_return_val_if_fail(EB_IS_SESSION_MANAGER(self), FALSE);
    return eb_budget_desk_take_config(self->parts->budget, config, error);
}

void
eb_session_manager_facts_async(EbSessionManager *self, GCancellable *cancellable, GAsyncReadyCallback callback,
                               gpointer user_data)
{
    g_return_if_fail(EB_IS_SESSION_MANAGER(self));
    GTask *task = g_task_new(self, cancellable, callback, user_data);
    gint64 since = eb_budget_day(g_get_real_time() / 1000) - KEPT_DAYS;
    g_task_set_source_tag(task, eb_session_manager_facts_async);
    eb_egress_log_flush(self->parts->egress);
    eb_store_run_async(self->parts->store, FALSE, gather, g_memdup2(&since, sizeof since), g_free, facts_free,
                       cancellable, on_gathered, task);
}

JsonObject *
eb_session_manager_facts_finish(EbSessionManager *self, GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_task_is_valid(result, self), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
