#!/usr/bin/env bash
# packaging/check.sh PACKAGE.deb...: installs the Debian packages on a bare Debian 12, builds tests/consumer there, runs the
# programs, and removes the packages again. As root, with mmdebstrap, from the machine's own Debian mirror.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
((EUID == 0)) || { echo "packaging/check.sh: only root can enter a bare Debian" >&2; exit 1; }

mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
  awk '$2 == "bookworm" && !found++ { print $1 }')
[[ -n $mirror ]] || { echo "packaging/check.sh: the sources of apt name no mirror of Debian 12" >&2; exit 1; }
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mmdebstrap --quiet --variant=minbase bookworm "$root/debian" "$mirror"
mkdir -p "$root/debian/packages"
cp "$@" "$root/debian/packages"
cp -r tests/consumer "$root/debian/consumer"

run() {
  unshare --mount --pid --fork sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" env -i "$@"' "$root/debian" \
    PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 "$@"
}
install() { run apt-get install -y -qq --no-install-recommends "$@" </dev/null >"$root/log" 2>&1 || { cat "$root/log" >&2; exit 1; }; }
files() { (cd "$root/debian" && find usr etc -path '*sluice*' | sort); }
run apt-get update -qq
files >"$root/before"

echo "== the programs, with what their packages name"
install $(cd "$root/debian" && ls ./packages/{libsluice[0-9],sluice-tools}*.deb | sed 's/^\./\/./')
run sluice --version
run sluice-demo --version
run sluice-sim run fleet --twice | grep 'both runs are the same'
[[ $(run sluice keys --redis redis://127.0.0.1:1 2>&1) == *127.0.0.1:1* ]]

echo "== the user's project"
install $(cd "$root/debian" && ls ./packages/*.deb | sed 's/^\./\/./') cmake g++ make
install catch2 libgtest-dev libgmock-dev  # for the project's tests
run cmake -DWORK=/consumer-work -DCXX=g++ -DLAUNCHER= "-DGENERATOR=Unix Makefiles" -DLEFT_OUT= \
  -DCOMPONENTS=asio,config,redis,sim,testing,timezone,world "-DLIBDIR=lib/$(run gcc -print-multiarch)" \
  -P /consumer/run.cmake
run ldd /consumer-work/components/consumer | grep -q 'libsluice\.so\.' # not a static library by chance

echo "== removed"
run dpkg --purge libsluice-dev sluice-tools sluice-doc "$(run dpkg-query -W -f '${Package}\n' 'libsluice[0-9]*')" >/dev/null
files | diff "$root/before" -
echo "the packages are installed, used and removed on Debian $(cat "$root/debian/etc/debian_version")"
