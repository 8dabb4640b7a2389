/* SPDX-License-Identifier: MIT */
#include "core/provision/eb-machine.h"

#include <string.h>
#include <sys/utsname.h>

gboolean
eb_machine_find(EbMachine *machine, GError **error)
{
    struct utsname name;
    g_autofree char *cpuinfo = NULL;

    if (uname(&name) != 0) {
        eb_set_error(error, EB_ERROR_FAILED, "image.machine", "the machine's kind cannot be read");
        return FALSE;
    }
    machine->cpu = strcmp(name.machine, "x86_64") == 0 ? "x64" : strcmp(name.machine, "aarch64") == 0 ? "arm64" : NULL;
    if (machine->cpu == NULL) {
        eb_set_error(error, EB_ERROR_NOT_SUPPORTED, "image.machine", "no guest image can be made for %s", name.machine);
        return FALSE;
    }
    machine->avx2 = strcmp(machine->cpu, "x64") != 0 ||
                    (g_file_get_contents("/proc/cpuinfo", &cpuinfo, NULL, NULL) && strstr(cpuinfo, " avx2") != NULL);
    return TRUE;
}
