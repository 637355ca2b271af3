// SPDX-License-Identifier: Apache-2.0
#include "common/wire/statement.h"

#include <gtest/gtest.h>

#include "absl/strings/escaping.h"
#include "tests/support/mem_env.h"
#include "tests/support/temp_folder.h"
#include "tests/support/test_util.h"

namespace kernix {
namespace {

using ::testing::HasSubstr;

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

// Test 2 of RFC 8032.
constexpr char kMessage[] = "r";
constexpr char kSignature[] =
    "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb0"
    "0d291612bb0c00";

class SignatureTest : public ::testing::Test {
 protected:
  absl::StatusOr<SigningKey> Read(std::string_view text, mode_t mode = 0600) {
    EXPECT_THAT(env_.WriteFile("/key.pem", text, mode), IsOk());
    return SigningKey::Read(env_, "/key.pem");
  }

  MemEnv env_;
};

TEST_F(SignatureTest, SignsAsTheStandardSays) {
  const auto key = Read(kPrivateKey);
  ASSERT_THAT(key, IsOk());
  EXPECT_EQ(absl::BytesToHexString(key->Sign(kMessage)), kSignature);
}

TEST_F(SignatureTest, AcceptsWhatATrustedKeyHasSignedAndNothingElse) {
  const auto key = Read(kPrivateKey);
  ASSERT_THAT(key, IsOk());
  const std::string signature = key->Sign("text");
  TrustedKeys keys;
  EXPECT_FALSE(keys.Accepts(key->public_key(), "text", signature));
  EXPECT_TRUE(keys.empty());
  ASSERT_THAT(keys.Add(kPublicKey), IsOk());
  EXPECT_FALSE(keys.empty());
  EXPECT_TRUE(keys.Accepts(key->public_key(), "text", signature));
  EXPECT_FALSE(keys.Accepts(key->public_key(), "texT", signature));
  EXPECT_FALSE(keys.Accepts(key->public_key(), "text", signature.substr(1)));
  EXPECT_FALSE(keys.Accepts(key->public_key(), "text", ""));
  EXPECT_FALSE(keys.Accepts(std::string(32, 'x'), "text", signature));
}

TEST_F(SignatureTest, RefusesAKeyThatOthersMayRead) {
  EXPECT_THAT(Read(kPrivateKey, 0640), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("chmod 600 /key.pem")));
}

TEST_F(SignatureTest, SaysHowToMakeAKeyWhereThereIsNone) {
  for (const char* text : {"", "no key", kPublicKey}) {
    EXPECT_THAT(Read(text), HasError(absl::StatusCode::kInvalidArgument,
                                     HasSubstr("make one with `openssl genpkey -algorithm ed25519`")));
  }
  EXPECT_THAT(SigningKey::Read(env_, "/absent"), HasError(absl::StatusCode::kNotFound, HasSubstr("/absent")));
}

TEST_F(SignatureTest, RefusesPublicKeysOfAnotherKind) {
  TrustedKeys keys;
  // Of X25519: the same length, but no key for signatures.
  for (const char* text : {"", "!", "AAAA", "MCowBQYDK2VuAyEAPUAXw+hDiVqStwqnTRt+vJyYLM8uxJaMwM1V8Sr0Zgw="}) {
    EXPECT_THAT(keys.Add(text), HasError(absl::StatusCode::kInvalidArgument, HasSubstr("-pubout")));
  }
  EXPECT_TRUE(keys.empty());
}

}  // namespace

}  // namespace kernix
