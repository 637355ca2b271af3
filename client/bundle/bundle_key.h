// SPDX-License-Identifier: Apache-2.0
//
// How a bundle knows a load: by everything that decides its artifact, except the compilers and the architectures. A
// machine without compilers can compute it.
#pragma once

#include <string>
#include <vector>

#include "common/base/digest.h"
#include "kernix/v1/kernix.pb.h"

namespace kernix {

// Covers texts, headers, flags, options and functions, but not the module's name. Include roots without a header that
// the sources reach do not count, because they differ from machine to machine. `load` has digests, and no texts.
Digest BundleKey(v1::RecordedLoad load);

// The parts in which two loads differ, for people: "source k.cu", "header inc/x.h", "compile flags". Not empty if their
// BundleKey()s differ.
std::vector<std::string> DifferencesOf(const v1::RecordedLoad& a, const v1::RecordedLoad& b);

}  // namespace kernix
