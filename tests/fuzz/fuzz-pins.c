/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdint.h>

#include "core/config/eb-pin-digest.h"
#include "core/config/eb-pins.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autoptr(GError) error = NULL;
    g_autoptr(EbPins) pins = eb_pins_parse((const char *)data, size, "pins.toml", &error);

    if (pins == NULL) {
        g_assert_true(error->domain == EB_ERROR);
        return 0;
    }
    GPtrArray *all = eb_pins_get_all(pins);
    g_assert_cmpuint(all->len, <=, EB_PINS_MAX);
    for (guint i = 0; i < all->len; i++) {
        const EbPin *pin = g_ptr_array_index(all, i);
        g_assert_true(eb_pins_find(pins, pin->name, NULL) == pin);
        g_assert_true(pin->kind == EB_PIN_DEB || eb_pin_digest_is_valid(pin->digest));
        for (char **url = pin->urls; url != NULL && *url != NULL; url++) {
            g_autofree char *expanded = eb_pin_expand_url(*url, pin->version);
            g_autofree char *wrong = eb_pin_check_url(expanded);
            g_assert_null(wrong);
        }
    }
    return 0;
}
