/* SPDX-License-Identifier: MIT */
/* Everything that incusd sends: answers, websocket handshakes, events, and logs with text of a guest's. */
#include <stddef.h>
#include <stdint.h>

#include "incus-events.h"
#include "incus-instance-json.h"
#include "incus-reply.h"
#include "incus-websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *text = (const char *)data;
    EbInstanceEvent event;
    g_autofree char *name = NULL;
    g_autofree char *reason = incus_lxc_log_reason(text, size);
    g_autoptr(IncusReply) reply = incus_reply_parse(text, size, 200, NULL);
    if (reply != NULL) {
        g_autoptr(EbInstanceInfo) info = incus_instance_info(incus_reply_object(reply));
        g_autoptr(EbImageInfo) image = incus_image_info(incus_reply_object(reply), NULL);
        incus_reply_outcome(reply, NULL);
        incus_instance_verify(incus_reply_object(reply), NULL);
    }
    incus_event_parse(text, size, &event, &name);
    g_assert_cmpint(incus_handshake_parse(data, size, "x", NULL), <=, (gssize)size);
    return 0;
}
