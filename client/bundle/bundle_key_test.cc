// SPDX-License-Identifier: Apache-2.0
#include "client/bundle/bundle_key.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

namespace kernix {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

void AddHeader(v1::RecordedLoad& load, uint32_t root, const std::string& path, std::string_view text) {
  v1::Header& header = *load.mutable_request()->add_header();
  header.set_include_root(root);
  header.set_path(path);
  header.set_digest(DigestOf(text).Raw());
}

v1::RecordedLoad Example() {
  v1::RecordedLoad load;
  v1::LoadRequest& request = *load.mutable_request();
  request.set_name("add");
  request.set_language(v1::LANGUAGE_CUDA);
  request.add_source()->set_label("add.cu");
  load.add_source_digest(DigestOf("text").Raw());
  v1::Options& options = *request.mutable_options();
  options.add_compile_flags("-DN=4");
  options.add_architectures("sm_90");
  options.set_include_root_count(3);
  options.set_optimization_level(3);
  options.add_quoted_include_root(0);
  AddHeader(load, 1, "a.h", "a");
  return load;
}

using Change = std::function<void(v1::RecordedLoad&)>;

v1::RecordedLoad With(const Change& change) {
  v1::RecordedLoad load = Example();
  change(load);
  return load;
}

TEST(BundleKeyTest, CoversNeitherCompilersNorArchitecturesNorTheName) {
  const Change changes[] = {
      [](auto& load) { load.set_key("abc"); },
      [](auto& load) { load.set_host_compiler("/usr/bin/g++"); },
      [](auto& load) { load.set_architecture_of_machine(true); },
      [](auto& load) { load.mutable_request()->set_name("other"); },
      [](auto& load) { load.mutable_request()->mutable_toolchain()->set_nvcc("/usr/bin/nvcc"); },
      [](auto& load) { load.mutable_request()->mutable_options()->add_architectures("sm_80"); },
      [](auto& load) { load.mutable_request()->mutable_options()->set_architectures_of_gpu(true); },
  };
  for (const Change& change : changes) EXPECT_EQ(BundleKey(With(change)), BundleKey(Example()));
}

TEST(BundleKeyTest, WhatAnEnvironmentAddsForCompilersDoesNotCount) {
  EXPECT_EQ(BundleKey(With([](auto& load) {
              load.mutable_request()->mutable_options()->add_link_flags("-L/usr/local/cuda/lib64/stubs");
              load.mutable_request()->mutable_options()->add_compile_flags("-allow-unsupported-compiler");
            })),
            BundleKey(Example()));
}

TEST(BundleKeyTest, FoldersWithoutAHeaderThatIsReachedDoNotCount) {
  EXPECT_EQ(BundleKey(With([](auto& load) {
              v1::LoadRequest& request = *load.mutable_request();
              request.mutable_header(0)->set_include_root(4);
              request.mutable_options()->set_include_root_count(7);
              request.mutable_options()->add_quoted_include_root(2);
            })),
            BundleKey(Example()));
}

struct Part {
  Change change;
  const char* name;
};

TEST(BundleKeyTest, CoversAllElseAndTellsWhatDiffers) {
  const Part parts[] = {
      {[](auto& load) { load.set_source_digest(0, DigestOf("other").Raw()); }, "source add.cu"},
      {[](auto& load) { load.mutable_request()->mutable_header(0)->set_digest("other"); }, "header a.h"},
      {[](auto& load) { AddHeader(load, 2, "b.h", "b"); }, "header b.h"},
      {[](auto& load) { load.mutable_request()->mutable_functions()->add_function()->set_name("f"); }, "the functions"},
      {[](auto& load) { load.mutable_request()->set_language(v1::LANGUAGE_CPP); }, "the language"},
      {[](auto& load) { load.mutable_request()->mutable_options()->add_compile_flags("-g"); }, "compile flags"},
      {[](auto& load) { load.mutable_request()->mutable_options()->add_link_flags("-lm"); }, "link flags"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_optimization_level(0); }, "optimization_level"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_use_fast_math(true); }, "use_fast_math"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_allow_cuda_graph(true); }, "allow_cuda_graph"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_separate_units(true); }, "separate"},
      {[](auto& load) { load.mutable_request()->mutable_options()->set_keep(true); }, "keep"},
  };
  for (const Part& part : parts) {
    const v1::RecordedLoad other = With(part.change);
    EXPECT_NE(BundleKey(other), BundleKey(Example())) << part.name;
    EXPECT_THAT(DifferencesOf(Example(), other), ElementsAre(part.name));
  }
  EXPECT_THAT(DifferencesOf(Example(), Example()), IsEmpty());
}

TEST(BundleKeyTest, TheSearchOrderOfHeadersCounts) {
  const v1::RecordedLoad one = With([](auto& load) { AddHeader(load, 2, "a.h", "other a"); });
  v1::RecordedLoad turned = one;
  turned.mutable_request()->mutable_header()->SwapElements(0, 1);
  turned.mutable_request()->mutable_header(0)->set_include_root(1);
  turned.mutable_request()->mutable_header(1)->set_include_root(2);
  EXPECT_NE(BundleKey(one), BundleKey(turned));
  EXPECT_THAT(DifferencesOf(one, turned), Not(IsEmpty()));
}

}  // namespace
}  // namespace kernix
