#!/bin/sh
# Build flywheel-sandbox:bookworm from a Debian mirror: no registry needed.
# Needs root, debootstrap and docker. DEBIAN_MIRROR overrides debootstrap's default mirror.
# Does nothing where the image was already made from the same package list.
set -eu

image=flywheel-sandbox:bookworm
here=$(cd "$(dirname "$0")" && pwd)
packages=$(paste -sd, "$here/packages.txt")
label=flywheel.packages
recipe=$(cat "$here/packages.txt" "$0" | sha256sum | cut -d' ' -f1)

built=$(docker image inspect --format "{{ index .Config.Labels \"$label\" }}" "$image" 2>/dev/null || true)
if [ "$built" = "$recipe" ]; then
    echo "$image is up to date"
    exit 0
fi

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"
# shellcheck disable=SC2086
debootstrap --variant=minbase --include="$packages" bookworm "$root" ${DEBIAN_MIRROR:-}
rm -rf "$root"/var/cache/apt/* "$root"/var/lib/apt/lists/* "$root"/usr/share/doc/* \
    "$root"/usr/share/man/* "$root"/etc/hostname "$root"/etc/resolv.conf

tar --create --numeric-owner --one-file-system --directory "$root" . |
    docker import \
        --change "ENV PATH=/usr/local/bin:/usr/bin:/bin LC_ALL=C.UTF-8 TZ=UTC" \
        --change "LABEL flywheel.image=sandbox $label=$recipe" \
        - "$image"
