/* SPDX-License-Identifier: MIT */

#include "ds-world.h"
#include "eb-test.h"
#include "test-client.h"

/* --- bodies --- */

typedef struct {
    const char *body;
    guint status;
    int code;
    const char *path;  /* (nullable) */
    const char *error; /* (nullable) */
} Case;

#define ROW(parts) "{\"type\":1,\"components\":[" parts "]}"
#define BUTTON(id, label) "{\"type\":2,\"style\":1,\"custom_id\":\"" id "\",\"label\":\"" label "\"}"

static const Case message_cases[] = {
    {"{\"content\":\"{*2000é}\"," QUIET "}", 200, 0, NULL, NULL},
    {"{\"content\":\"{*2001é}\"," QUIET "}", 400, 50035, "content", "BASE_TYPE_MAX_LENGTH"},
    {"{\"content\":7," QUIET "}", 400, 50035, "content", "BASE_TYPE_STRING"},
    {"{\"content\":\" \\n \\t\"," QUIET "}", 400, 50006, NULL, NULL},
    {"{\"content\":\"\\u202e\"," QUIET "}", 400, 50006, NULL, NULL},
    {"{" QUIET "}", 400, 50006, NULL, NULL},
    {"{\"content\":\"x\",\"nonce\":\"{*25n}\"," QUIET "}", 200, 0, NULL, NULL},
    {"{\"content\":\"x\",\"nonce\":\"{*26n}\"," QUIET "}", 400, 50035, "nonce", "BASE_TYPE_MAX_LENGTH"},
    {"{\"content\":\"x\",\"tts\":\"yes\"," QUIET "}", 400, 50035, "tts", "BASE_TYPE_BOOLEAN"},
    {"{\"content\":\"x\",\"allowed_mentions\":{\"parse\":[\"users\"],\"users\":[\"1\"]}}", 400, 50035,
     "allowed_mentions", "MESSAGE_ALLOWED_MENTIONS_PARSE_EXCLUSIVE"},
    {"{\"content\":\"x\",\"allowed_mentions\":{\"parse\":[\"all\"]}}", 400, 50035, "allowed_mentions.parse",
     "BASE_TYPE_CHOICES"},
    {"{\"content\":\"x\",\"allowed_mentions\":{\"users\":[\"alice\"]}}", 400, 50035, "allowed_mentions.users",
     "NUMBER_TYPE_COERCE"},
    {"{\"content\":\"x\",\"allowed_mentions\":[]}", 400, 50035, "allowed_mentions", "MODEL_TYPE_CONVERT"},
    {"{\"content\":\"x\",\"message_reference\":{\"message_id\":\"77\"}," QUIET "}", 400, 50035, "message_reference",
     "REPLIES_UNKNOWN_MESSAGE"},
    {"{\"content\":\"x\",\"message_reference\":{\"message_id\":\"77\",\"fail_if_not_exists\":false}," QUIET "}", 200, 0,
     NULL, NULL},
    {"{\"content\":\"x\",\"message_reference\":{\"message_id\":\"no\"}," QUIET "}", 400, 50035,
     "message_reference.message_id", "NUMBER_TYPE_COERCE"},
    {"{\"components\":[" ROW(BUTTON("a", "A")) "]," QUIET "}", 200, 0, NULL, NULL},
    {"{\"components\":[" ROW(BUTTON("a", "A") "," BUTTON("a", "B")) "]," QUIET "}", 400, 50035,
     "components.0.components.1.custom_id", "COMPONENT_CUSTOM_ID_DUPLICATED"},
    {"{\"components\":[" ROW(BUTTON("{*101i}", "A")) "]," QUIET "}", 400, 50035, "components.0.components.0.custom_id",
     "BASE_TYPE_BAD_LENGTH"},
    {"{\"components\":[" ROW(BUTTON("a", "{*81l}")) "]," QUIET "}", 400, 50035, "components.0.components.0.label",
     "BASE_TYPE_MAX_LENGTH"},
    {"{\"components\":[" ROW(BUTTON("a", "")) "]," QUIET "}", 400, 50035, "components.0.components.0",
     "BUTTON_COMPONENT_INVALID_EMPTY"},
    {"{\"components\":[" ROW("{\"type\":2,\"label\":\"x\",\"custom_id\":\"a\"}") "]," QUIET "}", 400, 50035,
     "components.0.components.0.style", "BASE_TYPE_CHOICES"},
    {"{\"components\":[" ROW("") "]," QUIET "}", 400, 50035, "components.0.components", "BASE_TYPE_BAD_LENGTH"},
    {"{\"components\":[" ROW(BUTTON("1", "x") "," BUTTON("2", "x") "," BUTTON("3", "x") "," BUTTON("4", "x") "," BUTTON(
         "5", "x") "," BUTTON("6", "x")) "]," QUIET "}",
     400, 50035, "components.0.components", "BASE_TYPE_BAD_LENGTH"},
    {"{\"components\":[" BUTTON("a", "A") "]," QUIET "}", 400, 50035, "components.0", "UNION_TYPE_CHOICES"},
    {"{\"components\":[" ROW(BUTTON("1", "x")) "," ROW(BUTTON("2", "x")) "," ROW(BUTTON("3", "x")) "," ROW(
         BUTTON("4", "x")) "," ROW(BUTTON("5", "x")) "," ROW(BUTTON("6", "x")) "]," QUIET "}",
     400, 50035, "components", "BASE_TYPE_MAX_LENGTH"},
    {"{\"components\":{}," QUIET "}", 400, 50035, "components", "BASE_TYPE_LIST"},
    {"{\"components\":[" ROW("{\"type\":3,\"custom_id\":\"s\",\"options\":[]}") "]," QUIET "}", 400, 50035,
     "components.0.components.0.options", "BASE_TYPE_BAD_LENGTH"},
    {"{\"embeds\":[{\"title\":\"{*257t}\"}]," QUIET "}", 400, 50035, "embeds.0.title", "BASE_TYPE_MAX_LENGTH"},
    {"{\"embeds\":[{\"description\":\"{*4097t}\"}]," QUIET "}", 400, 50035, "embeds.0.description",
     "BASE_TYPE_MAX_LENGTH"},
    {"{\"embeds\":[{\"description\":\"{*3001t}\"},{\"description\":\"{*3000t}\"}]," QUIET "}", 400, 50035, "embeds",
     "MAX_EMBED_SIZE_EXCEEDED"},
    {"{\"embeds\":[{\"fields\":[{\"name\":\"\",\"value\":\"v\"}]}]," QUIET "}", 400, 50035, "embeds.0.fields.0.name",
     "BASE_TYPE_BAD_LENGTH"},
    {"{\"content\":\"x\",\"attachments\":[{\"id\":\"0\",\"filename\":\"f\"}]," QUIET "}", 400, 50035, "attachments.0",
     "ATTACHMENT_NOT_FOUND"},
};

static void
test_message_bodies(Client *self, gconstpointer data)
{
    for (gsize i = 0; i < G_N_ELEMENTS(message_cases); i++) {
        const Case *row = &message_cases[i];
        g_autofree char *body = client_expanded(row->body);

        client_ask(self, "POST", CHANNEL "/messages", body);
        client_expect(self, row->status, row->code);
        if (row->path != NULL && !client_complains(self, row->path, row->error))
            g_error("%s: no %s at %s", row->body, row->error, row->path);
    }
    /* All of these name allowed_mentions; what does not is told, though it is taken. */
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", NULL), ==, 0);
    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"loud\",\"colour\":1}");
    client_expect(self, 200, 0);
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", "{\"rule\":\"allowed-mentions\"}"), ==, 1);
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", "{\"rule\":\"unknown-field\"}"), ==, 1);
}

static void
test_content(Client *self, gconstpointer data)
{
    g_autofree char *content = NULL;

    client_ask(self, "POST", CHANNEL "/messages", "{\"content\":\"\\n  a\\u0007\\u202eb \"," QUIET "}");
    client_expect(self, 200, 0);
    content = client_string_of(self, "content");
    g_assert_cmpstr(content, ==, "ab");
}

static void
test_pings(Client *self, gconstpointer data)
{
    static const struct {
        const char *body;
        guint pings;
    } rows[] = {
        {"{\"content\":\"<@" DISCORD_STANDIN_ALICE "> @everyone\"," QUIET "}", 0},
        {"{\"content\":\"<@" DISCORD_STANDIN_ALICE
         ">\",\"allowed_mentions\":{\"parse\":[],\"users\":[\"" DISCORD_STANDIN_BOB "\"]}}",
         0},
        {"{\"content\":\"`<@" DISCORD_STANDIN_ALICE ">` and ```\\n@here```\"}", 0},
        {"{\"content\":\"<@" DISCORD_STANDIN_ALICE ">\"}", 1},
        {"{\"content\":\"@here\",\"allowed_mentions\":{\"parse\":[\"everyone\"]}}", 1},
        {"{\"content\":\"<@&" DISCORD_STANDIN_BOT_ROLE ">\",\"allowed_mentions\":{\"parse\":[\"roles\"]}}", 1},
        {"{\"content\":\"<@" DISCORD_STANDIN_ALICE
         ">\",\"allowed_mentions\":{\"parse\":[],\"users\":[\"" DISCORD_STANDIN_ALICE "\"]}}",
         1},
    };
    guint sum = 0;

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        client_ask(self, "POST", CHANNEL "/messages", rows[i].body);
        client_expect(self, 200, 0);
        sum += rows[i].pings;
        g_assert_cmpuint(discord_standin_count(self->standin, "pings", NULL), ==, sum);
    }
}

static void
test_uploads(Client *self, gconstpointer data)
{
    static const struct {
        guint files;
        gsize size;
        guint status;
        int code;
    } rows[] = {{1, 1000, 200, 0},
                {10, 10, 200, 0},
                {11, 10, 400, 50035},
                {1, 10 * 1024 * 1024 + 1, 413, 40005},
                {3, 9 * 1024 * 1024, 413, 40005}};
    g_autofree char *url = g_strdup_printf("%s" CHANNEL "/messages", discord_standin_get_api(self->standin));

    for (gsize i = 0; i < G_N_ELEMENTS(rows); i++) {
        g_autoptr(SoupMultipart) multipart = soup_multipart_new("multipart/form-data");
        GString *payload = g_string_new("{" QUIET ",\"attachments\":[");
        g_autoptr(GBytes) file = g_bytes_new_take(g_strnfill(rows[i].size, 'f'), rows[i].size);
        g_autoptr(SoupMessage) message = NULL;

        for (guint k = 0; k < rows[i].files; k++) {
            g_autofree char *field = g_strdup_printf("files[%u]", k);

            g_string_append_printf(payload, "%s{\"id\":%u,\"filename\":\"a b.txt\"}", k > 0 ? "," : "", k);
            soup_multipart_append_form_file(multipart, field, "a b.txt", "text/plain", file);
        }
        g_string_append(payload, "]}");
        soup_multipart_append_form_string(multipart, "payload_json", payload->str);
        g_string_free(payload, TRUE);
        message = soup_message_new_from_multipart(url, multipart);
        client_send(self, message);
        client_expect(self, rows[i].status, rows[i].code);
    }
    g_assert_cmpuint(discord_standin_count(self->standin, "messages", "{\"attachments\":true}"), ==, 2);
    g_assert_cmpuint(discord_standin_count(self->standin, "violations", NULL), ==, 0);
}

int
main(int argc, char **argv)
{
    eb_test_init(&argc, &argv);
#define ADD(name) g_test_add("/standin/bodies/" #name, Client, NULL, client_set_up, test_##name, client_tear_down)
    ADD(message_bodies);
    ADD(content);
    ADD(pings);
    ADD(uploads);
#undef ADD
    return g_test_run();
}
