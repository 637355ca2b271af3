#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# cross.sh TARGET...
# Builds targets for aarch64 in build-aarch64, with this distribution's cross compiler, against a sysroot of the same
# release. What the build runs of its own, it runs in qemu-user.
#
# Needs g++-aarch64-linux-gnu and qemu-user-static (deploy/setup.sh cross).
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/build-aarch64
root=$build/sysroot
triple=aarch64-linux-gnu

# The packages whose libraries kernix links, as deploy/setup.sh names them, and those of the compiler.
packages() {
  sed -n '/^packages=($/,/^)$/p' deploy/setup.sh | grep -oE '\<(lib[a-z0-9+-]+|zlib1g)-dev\>' | sort -u
  echo libc6-dev "libstdc++-$($triple-g++ -dumpversion | cut -d. -f1)-dev"
}

# apt with lists, a state and downloads of its own: to it, nothing is installed. This machine's own are left alone.
apt_of_sysroot() {
  apt-get -q -y -o APT::Architecture=arm64 -o APT::Architectures::=arm64 -o Dir::State="$build/apt" \
    -o Dir::State::status="$build/apt/status" -o Dir::Cache="$build/apt" "$@"
}

make_sysroot() {
  local package link target folder
  mkdir -p "$build/apt/lists/partial" "$build/apt/archives/partial"
  : >"$build/apt/status"
  apt_of_sysroot update
  # shellcheck disable=SC2046
  apt_of_sysroot install --no-install-recommends --download-only $(packages)
  rm -rf "$root"
  for folder in bin lib; do
    mkdir -p "$root/usr/$folder"
    ln -s "usr/$folder" "$root/$folder"
  done
  for package in "$build"/apt/archives/*.deb; do
    dpkg-deb --fsys-tarfile "$package" | tar -x --keep-directory-symlink -C "$root"
  done
  find "$root" -lname '/*' -printf '%p %l\n' | while read -r link target; do ln -sfn "$root$target" "$link"; done
  ln -sf /usr/bin/grpc_*_plugin "$root/usr/bin/"   # gRPC's CMake package looks for them beside its libraries
  touch "$root/complete"
}

write_toolchain() {
  cat <<END
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_COMPILER $triple-g++)
set(CMAKE_SYSROOT $root)
set(CMAKE_FIND_ROOT_PATH $root)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64-static -L $root)
set(ENV{PKG_CONFIG_SYSROOT_DIR} $root)
set(ENV{PKG_CONFIG_LIBDIR} $root/usr/lib/$triple/pkgconfig:$root/usr/share/pkgconfig)
END
}

[ -e "$root/complete" ] || make_sysroot
write_toolchain >"$build/toolchain.cmake"
cmake -S . -B "$build" -G Ninja --toolchain "$build/toolchain.cmake" -DKERNIX_BUILD_PYTHON=OFF --log-level=NOTICE
cmake --build "$build" --parallel "${JOBS:-$(nproc)}" --target "$@"
