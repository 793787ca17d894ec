#!/usr/bin/env bash
# Install what Rigstep needs from docker/packages.txt on Debian 12.
#
#   docker/setup.sh             what it takes to build, test and run
#   docker/setup.sh --build     what it takes to build and run
#   docker/setup.sh --develop   that, and the second compiler with its checkers
#   docker/setup.sh --bench     the first, and the other engines that rigstep bench compares with
#   docker/setup.sh --runtime   only what a built rigstep needs to run
#   docker/setup.sh --help      this text
#
# Runs as root, or with sudo. Does nothing, quickly, where all is installed. One package is unpacked alone, into
# /opt/rigstep: its headers and static libraries need none of the 150 packages that it names.
# Exit status: 0 installed, 1 failed, 2 wrong usage.
set -euo pipefail

list=$(dirname "$0")/packages.txt
sections='build test runtime'
for argument in "$@"; do
  case $argument in
    --develop) sections='build test runtime develop' ;;
    --build) sections='build runtime' ;;
    --bench) sections='build test runtime bench' ;;
    --runtime) sections=runtime ;;
    --help | -h) sed -n '2,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    *) echo "setup: unknown argument '$argument'; see docker/setup.sh --help" >&2; exit 2 ;;
  esac
done

fail() { echo "setup: $*" >&2; exit 1; }

[[ -r $list ]] || fail "$list is missing"
packages_of() {
  awk -v wanted=" $* " '
    /^# section:/ { section = $3 }
    { sub(/#.*/, "") }
    NF && index(wanted, " " section " ") { print $1 }' "$list"
}
mapfile -t wanted < <(packages_of "$sections")
alone=()
[[ $sections != *build* ]] || mapfile -t alone < <(packages_of alone)
command -v dpkg-query >/dev/null && command -v apt-get >/dev/null ||
  fail "this system has no apt; install the equivalents of these Debian 12 packages by hand: ${wanted[*]} ${alone[*]}"

# A package counts as present when it is installed or when an installed one provides it.
present=" $(dpkg-query -W -f='${db:Status-Status} ${Package} ${Provides}\n' |
  awk '$1 == "installed" { gsub(/\([^)]*\)|,/, " "); $1 = ""; print }' | tr -s '\n' ' ') "
missing=() to_unpack=() root=/opt/rigstep
for package in "${wanted[@]}"; do
  [[ $present == *" $package "* ]] || missing+=("$package")
done
for package in "${alone[@]}"; do
  [[ $present == *" $package "* || -d $root/$package ]] || to_unpack+=("$package")
done
if [[ ${#missing[@]} -eq 0 && ${#to_unpack[@]} -eq 0 ]]; then
  echo "setup: all ${#wanted[@]} packages are installed"
  exit 0
fi

system=$(. /etc/os-release && echo "${ID:-unknown} ${VERSION_ID:-}")
[[ $system == "debian 12" ]] ||
  echo "setup: warning: made for Debian 12, this is $system; package names may differ" >&2

as_root=(env DEBIAN_FRONTEND=noninteractive)
if [[ $(id -u) -ne 0 ]]; then
  command -v sudo >/dev/null || fail "run it as root, or install sudo; missing: ${missing[*]} ${to_unpack[*]}"
  as_root=(sudo "${as_root[@]}")
fi

log=$(mktemp -t rigstep-setup.XXXXXX)
apt() {
  "${as_root[@]}" apt-get -q -o Acquire::Retries=3 -o Dpkg::Use-Pty=0 "$@" </dev/null 2>&1 | tee -a "$log" |
    awk '/^Need to get |^Get:[0-9]*0 / { print "setup:   " $0 }
         /^Setting up / && ++n % 50 == 0 { print "setup:   " n " set up" }
         { fflush() }' ||
    { tail -n 15 "$log" >&2; fail "apt-get $1 failed (all of its output: $log)"; }
}
SECONDS=0
echo "setup: reading the package lists"
apt update
if [[ ${#missing[@]} -gt 0 ]]; then
  echo "setup: installing ${missing[*]}"
  apt install -y --no-install-recommends "${missing[@]}"
fi
for package in "${to_unpack[@]}"; do
  echo "setup: unpacking $package into $root/$package"
  folder=$(mktemp -d -t rigstep-setup.XXXXXX)
  (cd "$folder" && apt download "$package" && "${as_root[@]}" dpkg-deb -x "$package"_*.deb unpacked &&
    "${as_root[@]}" install -d -m 755 "$root" && "${as_root[@]}" mv unpacked "$root/$package") ||
    { "${as_root[@]}" rm -rf "$folder"; fail "$package cannot be unpacked into $root"; }
  "${as_root[@]}" rm -rf "$folder"
done
rm -f "$log"
echo "setup: done in ${SECONDS} s"
