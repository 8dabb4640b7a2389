/* SPDX-License-Identifier: MIT */

#include "ds-record.h"

#include <errno.h>
#include <string.h>

gboolean
ds_record_open(DsWorld *world, const char *path, GError **error)
{
    world->record = fopen(path, "ae");
    if (world->record == NULL)
        g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(errno), "%s: %s", path, g_strerror(errno));
    return world->record != NULL;
}

static void
write_bytes(DsWorld *world, const char *bytes, gsize length)
{
    if (fwrite(bytes, 1, length, world->record) != length)
        g_error("the record cannot be written: %s", g_strerror(errno));
}

static void
write_header(const char *name, const char *value, gpointer user_data)
{
    DsWorld *world = user_data;
    g_autofree char *own = g_strconcat("Bot ", world->token, NULL);
    gboolean belongs = g_ascii_strcasecmp(name, "Authorization") == 0 && strcmp(value, own) == 0;

    fprintf(world->record, "%s: %s\n", name, belongs ? "(the token)" : value);
}

void
ds_record_request(DsWorld *world, SoupServerMessage *message)
{
    g_autoptr(GBytes) body = NULL;
    g_autofree char *uri = NULL;
    const char *bytes;
    gsize length;

    if (world->record == NULL)
        return;
    uri = g_uri_to_string(soup_server_message_get_uri(message));
    fprintf(world->record, "%s %s\n", soup_server_message_get_method(message), uri);
    soup_message_headers_foreach(soup_server_message_get_request_headers(message), write_header, world);
    body = soup_message_body_flatten(soup_server_message_get_request_body(message));
    bytes = g_bytes_get_data(body, &length);
    write_bytes(world, "\n", 1);
    write_bytes(world, bytes, length);
    write_bytes(world, "\n", 1);
    fflush(world->record);
}

/* IDENTIFY and RESUME say who it is. */
void
ds_record_frame(DsWorld *world, const char *text, gsize length)
{
    g_autofree char *own = g_strdup_printf("\"token\":\"%s\"", world->token);
    const char *at;

    if (world->record == NULL)
        return;
    at = g_strstr_len(text, (gssize)length, own);
    if (at != NULL) {
        write_bytes(world, text, (gsize)(at - text));
        length -= (gsize)(at - text) + strlen(own);
        text = at + strlen(own);
    }
    write_bytes(world, text, length);
    write_bytes(world, "\n", 1);
    fflush(world->record);
}
