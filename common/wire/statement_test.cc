// SPDX-License-Identifier: Apache-2.0
#include "common/wire/statement.h"

#include <gtest/gtest.h>

#include "tests/support/mem_env.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

// Tests 1 and 2 of RFC 8032, section 7.1, as `openssl pkey` writes such keys.
constexpr char kPrivateKey[] =
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEIEzNCJso/5banbbDRuwRTg9bijGfNaumJNqM9u1PuKb7\n"
    "-----END PRIVATE KEY-----\n";
constexpr char kPublicKey[] = "MCowBQYDK2VwAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw=";
constexpr char kOtherPublicKey[] = "MCowBQYDK2VwAyEA11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

Statement Example() {
  return {.key = DigestOf("key"),
          .headers = {{"math.h", DigestOf("math")}},
          .files = {{"artifact.so", DigestOf("code"), 4}},
          .detail = "detail"};
}

SigningKey Key() {
  MemEnv env;
  EXPECT_THAT(env.WriteFile("/key.pem", kPrivateKey, 0600), IsOk());
  return *SigningKey::Read(env, "/key.pem");
}

TrustedKeys Trusting(const char* key) {
  TrustedKeys keys;
  EXPECT_THAT(keys.Add(key), IsOk());
  return keys;
}

TEST(StatementTest, SaysWhatWasSaid) {
  const auto statement = DecodeStatement(EncodeStatement(Example(), nullptr), {});
  ASSERT_THAT(statement, IsOk());
  EXPECT_EQ(statement->key, DigestOf("key"));
  EXPECT_EQ(statement->headers, Example().headers);
  ASSERT_EQ(statement->files.size(), 1u);
  EXPECT_EQ(statement->files[0].name, "artifact.so");
  EXPECT_EQ(statement->files[0].digest, DigestOf("code"));
  EXPECT_EQ(statement->files[0].size, 4u);
  EXPECT_EQ(statement->detail, "detail");
}

TEST(StatementTest, WithTrustedKeysOneOfThemMustHaveSigned) {
  const SigningKey key = Key();
  const std::string is_signed = EncodeStatement(Example(), &key);
  EXPECT_THAT(DecodeStatement(is_signed, {}), IsOk());
  EXPECT_THAT(DecodeStatement(is_signed, Trusting(kPublicKey)), IsOk());
  EXPECT_TRUE(absl::IsPermissionDenied(DecodeStatement(is_signed, Trusting(kOtherPublicKey)).status()));
  const std::string not_signed = EncodeStatement(Example(), nullptr);
  EXPECT_TRUE(absl::IsPermissionDenied(DecodeStatement(not_signed, Trusting(kPublicKey)).status()));
}

TEST(StatementTest, NoChangedByteIsBelieved) {
  const SigningKey key = Key();
  const std::string is_signed = EncodeStatement(Example(), &key);
  const TrustedKeys trusted = Trusting(kPublicKey);
  for (size_t i = 0; i < is_signed.size(); ++i) {
    std::string changed = is_signed;
    changed[i] ^= 1;
    EXPECT_FALSE(DecodeStatement(changed, trusted).ok()) << "byte " << i;
  }
}

TEST(StatementTest, WhatIsCutIsDamaged) {
  const std::string whole = EncodeStatement(Example(), nullptr);
  EXPECT_TRUE(absl::IsDataLoss(DecodeStatement(whole.substr(0, whole.size() - 1), {}).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeStatement("", {}).status()));
  EXPECT_TRUE(absl::IsDataLoss(DecodeStatement("no statement", {}).status()));
}

}  // namespace
}  // namespace kernix
