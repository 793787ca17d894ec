# shellcheck shell=bash
# own_namespace FLAGS...: sets `namespace` to a command that runs another one with mounts of its own, and with what the
# flags of unshare ask for. Where that is not permitted it is false and sets `reason`.
own_namespace() {
  namespace=(unshare --user --map-root-user --mount "$@")
  "${namespace[@]}" true 2>/dev/null && return
  # within a chroot only the superuser gets one, and what is mounted in it may be seen outside: scripts unmount it again
  namespace=(unshare --mount --propagation unchanged "$@")
  reason=$("${namespace[@]}" true 2>&1)
}
