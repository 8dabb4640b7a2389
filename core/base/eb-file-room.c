/* SPDX-License-Identifier: MIT */
#include "core/base/eb-file-room.h"

#define FILES 10000

guint64
eb_file_room_bound(guint64 total)
{
    return MIN(FILES, total / 20);
}
