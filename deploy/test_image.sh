#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# test_image.sh WHEEL
# Builds deploy/container/Containerfile with buildah, on an image of this distribution that debootstrap makes, and runs
# kernixd and a load in it. Needs root.
set -euo pipefail
cd "$(dirname "$0")/.."

wheel=$(realpath "$1")
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT
images() { buildah --root "$scratch/images" --runroot "$scratch/run" --storage-driver vfs "$@"; }

mkdir "$scratch/root" "$scratch/context"
cp "$wheel" "$scratch/context/"
# shellcheck source=/dev/null
deploy/in_root.sh "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$scratch/root" true LICENSE
base=$(images from scratch)
images add --quiet "$base" "$scratch/root" /
images commit --quiet "$base" base
images build --isolation chroot --build-arg BASE=localhost/base --tag kernix --file deploy/container/Containerfile "$scratch/context"

container=$(images from localhost/kernix)
# shellcheck disable=SC2016
images run --isolation chroot "$container" -- sh -euc '
  [ "$(id -un)" = kernix ]
  cd /tmp
  export HOME=/tmp
  printf "#include \"brainevent/common.h\"\n// @BE one ret\nvoid one(BE::Tensor y) { *y.data_ptr<float>() = 1; }\n" >one.cpp
  kernixctl compile one.cpp
  kernixctl compile one.cpp | grep "from the cache"
  python3 -c "import kernix"
  kernixctl shutdown'
echo ok
