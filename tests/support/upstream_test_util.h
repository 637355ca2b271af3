// SPDX-License-Identifier: Apache-2.0
//
// For tests of Upstream.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "daemon/remote/upstream.h"
#include "tests/support/fault_env.h"

namespace kernix::remote {

// The real machine, with a clock that a test can move forward.
class SteppedEnv : public FaultEnv {
 public:
  SteppedEnv() : FaultEnv(Env::Posix()) {}
  MonotonicTime Now() override { return FaultEnv::Now() + Duration(ahead_.load()); }
  void AdvanceClock(Duration by) { ahead_ += by.count(); }

 private:
  std::atomic<int64_t> ahead_{0};
};

// Bytes that do not compress; the same for the same arguments.
inline std::string RandomBytes(size_t size, uint32_t seed = 1) {
  std::mt19937 random(seed + static_cast<uint32_t>(size));
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

inline Blob MakeBlob(std::string bytes) {
  const exec::BlobDigest digest = exec::BlobDigestOf(bytes);
  return {digest, exec::MakeContent(std::move(bytes))};
}

inline std::unique_ptr<Upstream> OpenUpstream(Env& env, UpstreamOptions options) {
  absl::StatusOr<std::unique_ptr<Upstream>> upstream = Upstream::Open(env, std::move(options));
  EXPECT_TRUE(upstream.ok()) << upstream.status();
  return upstream.ok() ? *std::move(upstream) : nullptr;
}

// The value of a metric, as the registry prints it: "kernix_upstream_retries_total".
class UpstreamNumbers {
 public:
  explicit UpstreamNumbers(const Upstream& upstream) { upstream.Register(registry_); }

  int64_t operator[](const std::string& sample) const {
    const std::string text = registry_.Text();
    const size_t at = text.find("\n" + sample + " ");
    EXPECT_NE(at, std::string::npos) << sample << " is not in\n" << text;
    return at == std::string::npos ? -1 : std::stoll(text.substr(at + sample.size() + 2));
  }
  int64_t Calls(const std::string& call, const std::string& outcome) const {
    return (*this)["kernix_upstream_calls_total{call=\"" + call + "\",outcome=\"" + outcome + "\"}"];
  }

 private:
  MetricsRegistry registry_;
};

}  // namespace kernix::remote
