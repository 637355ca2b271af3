// SPDX-License-Identifier: Apache-2.0
#include "daemon/rpc/load_cost.h"

#include <gtest/gtest.h>

#include <string>

namespace kernix::server {
namespace {

constexpr uint64_t kMiB = 1 << 20;

v1::LoadRequest WithText(size_t bytes) {
  v1::LoadRequest request;
  request.add_source()->set_text(std::string(bytes, ';'));
  return request;
}

v1::LoadRequest WithHeaders(int count, size_t path_bytes) {
  v1::LoadRequest request = WithText(100);
  for (int i = 0; i < count; ++i) {
    v1::Header& header = *request.add_header();
    header.set_path(std::string(path_bytes, 'h'));
    header.set_digest(std::string(32, 'd'));
  }
  return request;
}

v1::LoadRequest WithUnits(int count) {
  v1::LoadRequest request;
  for (int i = 0; i < count; ++i) request.add_source()->set_label("a.cu");
  request.mutable_options()->set_separate_units(true);
  return request;
}

v1::LoadRequest WithFlags(v1::LoadRequest request, int count) {
  for (int i = 0; i < count; ++i) request.mutable_options()->add_compile_flags("-Wall");
  return request;
}

TEST(LoadCostTest, WhatPeopleLoadCostsLittle) {
  EXPECT_LT(LoadCost(WithText(5'000)), kMiB / 2);
  // So many at once are within the default of max_request_bytes_per_user, 512 MiB: as many loads as load_many() has
  // under way, with the headers of a large project or with preprocessed texts.
  EXPECT_LT(64 * LoadCost(WithHeaders(10'000, 40)), 512 * kMiB);
  EXPECT_LT(64 * LoadCost(WithText(kMiB)), 512 * kMiB);
  EXPECT_LT(LoadCost(WithText(64 * kMiB)), 512 * kMiB);
}

TEST(LoadCostTest, EachUnitHasTheFlagsAgain) {
  const auto of_flags = [](int units) {
    return LoadCost(WithFlags(WithUnits(units), 100)) - LoadCost(WithUnits(units));
  };
  EXPECT_GT(of_flags(100), 50 * of_flags(1));
}

TEST(LoadCostTest, EachArchitectureWhoseResultsAreKeptHasStepsOfItsOwn) {
  v1::LoadRequest request = WithFlags(WithUnits(10), 1000);
  request.set_language(v1::LANGUAGE_CUDA);
  request.mutable_options()->add_architectures("sm_90");
  const uint64_t once = LoadCost(request);
  request.mutable_options()->set_keep(true);
  EXPECT_GT(2 * LoadCost(request), 3 * once);
}

TEST(LoadCostTest, EmptyPartsCostMoreThanTheirBytes) {
  v1::LoadRequest request;
  for (int i = 0; i < 10'000; ++i) request.mutable_functions()->add_function();
  EXPECT_GT(LoadCost(request), 1000 * request.ByteSizeLong());
}

TEST(LoadCostTest, AnnotationsStandForFunctions) {
  v1::LoadRequest request;
  std::string& text = *request.add_source()->mutable_text();
  const uint64_t without = LoadCost(request);
  for (int i = 0; i < 1000; ++i) text += "// @BE f\n";
  EXPECT_LT(LoadCost(request), 2 * without);
  request.mutable_functions()->set_from_annotations(true);
  EXPECT_GT(LoadCost(request), 10 * without);
}

TEST(LoadCostTest, SaysWhatCostsMost) {
  EXPECT_EQ(CostliestPart(WithFlags(WithUnits(1000), 500)),
            "1000 sources, each compiled with 500 flags and 0 include paths");
  EXPECT_EQ(CostliestPart(WithText(kMiB)), "1048576 bytes of source text");
  EXPECT_EQ(CostliestPart(WithHeaders(10'000, 40)), "10000 headers");
}

}  // namespace
}  // namespace kernix::server
