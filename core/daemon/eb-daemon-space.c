/* SPDX-License-Identifier: MIT */
#include "core/daemon/eb-daemon-space.h"

#include "core/base/eb-file-room.h"

#include <errno.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

/* Above @bound; when it was below, a quarter more. */
static gboolean
is_above(gboolean was_below, guint64 free, guint64 bound)
{
    return free >= bound && (!was_below || free - bound >= bound / 4);
}

EbSpaceLevel
eb_space_judge(EbSpaceLevel before, guint64 free, guint64 min_free)
{
    g_return_val_if_fail(min_free > 0 && min_free <= G_MAXUINT64 / 2, EB_SPACE_FINE);
    if (!is_above(before == EB_SPACE_FULL, free, min_free))
        return EB_SPACE_FULL;
    return is_above(before != EB_SPACE_FINE, free, 2 * min_free) ? EB_SPACE_FINE : EB_SPACE_LOW;
}

void
eb_space_judge_all(EbSpace *space, EbSpaceLevel before, guint64 min_free)
{
    guint64 bound = eb_file_room_bound(space->files);
    EbSpaceLevel bytes = eb_space_judge(before, space->free, min_free);
    EbSpaceLevel files = bound > 0 ? eb_space_judge(before, space->files_free, bound) : EB_SPACE_FINE;

    space->level = MAX(bytes, files);
    space->files_short = files > bytes;
}

guint64
eb_space_relief(const EbSpace *space, guint64 min_free)
{
    guint64 enough = 2 * min_free + min_free / 2;

    if (space->level != EB_SPACE_FINE && space->free < enough)
        return enough - space->free;
    return space->level != EB_SPACE_FINE && space->files_short ? 1 : 0;
}

void
eb_space_free(gpointer data)
{
    EbSpace *space = data;

    g_free(space->path);
    g_free(space);
}

/* In the units of the configuration; GLib's words have spaces that nobody finds with grep. */
static char *
format_size(guint64 bytes)
{
    guint64 mib = bytes / (1024 * 1024);

    if (mib < 1024)
        return g_strdup_printf("%" G_GUINT64_FORMAT " MiB", mib);
    return g_strdup_printf("%" G_GUINT64_FORMAT ".%" G_GUINT64_FORMAT " GiB", mib / 1024, mib % 1024 * 10 / 1024);
}

char *
eb_space_describe(const EbSpace *space, guint64 min_free)
{
    g_autofree char *free = format_size(space->free);
    g_autofree char *total = format_size(space->total);
    g_autofree char *needed = format_size(min_free);
    g_autofree char *path = eb_log_escape(space->path, -1, 200);

    if (space->files_short)
        return g_strdup_printf("%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
                               " inodes are free below %s, new sessions need %" G_GUINT64_FORMAT,
                               space->files_free, space->files, path, eb_file_room_bound(space->files));
    return g_strdup_printf("%s of %s are free below %s, new sessions need %s", free, total, path, needed);
}

static void
read_in_worker(GTask *task)
{
    char **paths = g_task_get_task_data(task);
    g_autoptr(GPtrArray) found = g_ptr_array_new_with_free_func(eb_space_free);

    for (; *paths != NULL; paths++) {
        struct statvfs info;
        struct stat place;
        gboolean seen = FALSE;
        if (stat(*paths, &place) != 0 || statvfs(*paths, &info) != 0) {
            int failed = errno;
            /* A project directory that is not there yet is the business of others. */
            if (failed == ENOENT)
                continue;
            g_task_return_error(task,
                                eb_error_new(EB_ERROR_FAILED, "space.read", "%s: the space left cannot be read: %s",
                                             *paths, g_strerror(failed)));
            return;
        }
        for (guint i = 0; i < found->len; i++)
            seen = seen || ((EbSpace *)found->pdata[i])->device == (guint64)place.st_dev;
        if (seen)
            continue;
        EbSpace *space = g_new0(EbSpace, 1);
        space->path = g_strdup(*paths);
        space->device = place.st_dev;
        space->free = (guint64)info.f_bavail * info.f_frsize;
        space->total = (guint64)info.f_blocks * info.f_frsize;
        space->files = info.f_files;
        space->files_free = info.f_favail;
        g_ptr_array_add(found, space);
    }
    g_task_return_pointer(task, g_steal_pointer(&found), (GDestroyNotify)g_ptr_array_unref);
}

void
eb_space_read_async(EbWorker *worker, const char *const *paths, GAsyncReadyCallback callback, gpointer user_data)
{
    GTask *task = g_task_new(NULL, NULL, callback, user_data);

    g_task_set_source_tag(task, eb_space_read_async);
    g_task_set_task_data(task, g_strdupv((char **)paths), (GDestroyNotify)g_strfreev);
    eb_worker_run(worker, task, read_in_worker);
}

GPtrArray *
eb_space_read_finish(GAsyncResult *result, GError **error)
{
    g_return_val_if_fail(g_async_result_is_tagged(result, eb_space_read_async), NULL);
    return g_task_propagate_pointer(G_TASK(result), error);
}
