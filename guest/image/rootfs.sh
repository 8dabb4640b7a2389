#!/bin/sh
# SPDX-License-Identifier: MIT
# rootfs.sh bootstrap ROOT SUITE PACKAGE,...     Debian from this machine's own mirror, checked by apt
# rootfs.sh configure ROOT INIT                  what makes it a guest
# rootfs.sh check ROOT COMMAND...                do the commands answer --version, as the agent's uid, without network
# rootfs.sh pack ROOT TAR
#
# Called in a mount namespace of its own: nothing mounted here outlives it.
set -eu
umask 022
export LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive
act=$1 root=$2
shift 2

# URIs of the machine's own Debian mirror: whatever apt is set to, in either format of its sources.
mirror_uris() {
    # shellcheck disable=SC2016 # the fields are apt's, not the shell's
    apt-get indextargets --format '$(COMPONENT) $(REPO_URI)' 'Created-By: Packages' 2>/dev/null |
        sed -n 's/^main //p' | sort -u
}

bootstrap() {
    suite=$1 packages=$2 keys=/usr/share/keyrings/debian-archive-keyring.gpg
    main=$(mirror_uris | grep -E '/debian/?$' | head -n 1)
    security=$(mirror_uris | grep -E '/debian-security/?$' | head -n 1)
    [ -n "$main" ] || { echo 'the apt configuration of this machine names no Debian mirror' >&2; exit 1; }
    [ -r "$keys" ] || { echo "$keys is missing (package debian-archive-keyring)" >&2; exit 1; }
    set -- "deb [signed-by=$keys] $main $suite main"
    [ -z "$security" ] || set -- "$@" "deb [signed-by=$keys] $security $suite-security main"
    mmdebstrap --mode=root --variant=minbase --include="$packages" \
        --aptopt='Acquire::Retries "3"' --dpkgopt='path-exclude=/usr/share/doc/*' \
        --dpkgopt='path-include=/usr/share/doc/*/copyright' --dpkgopt='path-exclude=/usr/share/man/*' \
        --dpkgopt='path-exclude=/usr/share/info/*' "$suite" "$root" "$@"
}

configure() {
    init=$1
    # Nothing of the machine that built it.
    rm -rf "$root"/etc/apt/sources.list "$root"/etc/apt/sources.list.d/* "$root"/var/lib/apt/lists/* \
        "$root"/var/cache/apt/*.bin "$root"/etc/apt/apt.conf.d/99mmdebstrap "$root"/etc/machine-id
    rm -f "$root/etc/resolv.conf" "$root/etc/hostname"
    : >"$root/etc/machine-id"
    : >"$root/etc/resolv.conf"
    echo guest >"$root/etc/hostname"
    printf '127.0.0.1 localhost guest\n::1 localhost\n' >"$root/etc/hosts"

    chroot "$root" useradd --create-home --uid 1000 --user-group --shell /bin/bash agent
    # The id range of a guest is 65536 wide: Debian's default sub-ids lie outside of it.
    echo agent:2000:60000 >"$root/etc/subuid"
    echo agent:2000:60000 >"$root/etc/subgid"
    printf '[safe]\n\tdirectory = /workspace\n\tdirectory = /workspace/*\n' >"$root/etc/gitconfig"
    install -d "$root/workspace" "$root/state" "$root/opt/errand/run" "$root/usr/lib/errand" "$root/etc/containers"
    # No cgroup file system, no network: containers in the guest share the guest's loopback and so its relay.
    printf '%s\n' '[containers]' 'cgroups = "disabled"' 'cgroupns = "host"' 'netns = "host"' 'ipcns = "private"' '[engine]' \
        'cgroup_manager = "cgroupfs"' 'events_logger = "file"' 'runtime = "crun"' >"$root/etc/containers/containers.conf"
    # A shell may always raise its own score: the command that eats the memory dies, not the agent.
    echo 'echo 500 >/proc/self/oom_score_adj 2>/dev/null || :' >"$root/usr/lib/errand/bashenv"
    # Set-uid programs: the two that rootless containers need, no other.
    find "$root" -xdev -type f -perm /6000 ! -name newuidmap ! -name newgidmap -exec chmod ug-s {} +

    install -m 0755 "$init" "$root/usr/sbin/init"
    ln -sfn ../usr/sbin/init "$root/usr/lib/errand/init"
}

check() {
    for command in "$@"; do
        # shellcheck disable=SC2016 # the inner shell's parameters
        if ! version=$(unshare --mount --pid --fork --net --propagation private sh -c '
            mount -t proc proc "$1/proc" && mount -t tmpfs tmpfs "$1/tmp" &&
            exec timeout 120 chroot --userspec=1000:1000 --groups= "$1" env -i HOME=/tmp PATH=/usr/local/bin:/usr/bin:/bin \
                LANG=C.UTF-8 "$2" --version' sh "$root" "$command" 2>&1 </dev/null); then
            printf '%s --version fails in the image: %s\n' "$command" "$version" >&2
            exit 1
        fi
        printf '%s %s\n' "$command" "$(printf '%s\n' "$version" | head -n 1)"
    done
}

pack() {
    tar --numeric-owner --xattrs --one-file-system -C "$root" -cf "$1" .
}

case $act in
bootstrap | configure | check | pack) "$act" "$@" ;;
*) echo "unknown action $act" >&2; exit 2 ;;
esac
