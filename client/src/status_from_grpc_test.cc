// SPDX-License-Identifier: Apache-2.0
#include "client/src/status_from_grpc.h"

#include <google/protobuf/any.pb.h>
#include <google/protobuf/unknown_field_set.h>
#include <gtest/gtest.h>

#include "daemon/base/error.h"

namespace kernix {
namespace {

grpc::Status WithDetail(grpc::StatusCode code, const std::string& message, const v1::ErrorDetail& detail) {
  google::protobuf::Any any;
  any.PackFrom(detail);
  google::protobuf::UnknownFieldSet rpc_status;
  rpc_status.AddVarint(1, code);
  *rpc_status.AddLengthDelimited(2) = message;
  *rpc_status.AddLengthDelimited(3) = any.SerializeAsString();
  std::string details;
  rpc_status.SerializeToString(&details);
  return grpc::Status(code, message, details);
}

TEST(StatusFromGrpcTest, OkIsOk) { EXPECT_TRUE(StatusFromGrpc(grpc::Status::OK, "x").ok()); }

TEST(StatusFromGrpcTest, TheDaemonsDetailBecomesThePayload) {
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::RESOURCE);
  detail.set_message("the disk is full");
  detail.set_code(static_cast<int>(absl::StatusCode::kResourceExhausted));
  const absl::Status status = StatusFromGrpc(WithDetail(grpc::RESOURCE_EXHAUSTED, "the disk is full", detail), "peer");
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_EQ(std::string(status.message()), "the disk is full");
  EXPECT_EQ(KindOf(status), v1::ErrorDetail::RESOURCE);
  EXPECT_FALSE(DaemonWasLost(status));
}

TEST(StatusFromGrpcTest, WithoutADetailThePeerIsNamed) {
  const absl::Status status = StatusFromGrpc(grpc::Status(grpc::NOT_FOUND, "no such blob"), "kernixd at /x");
  EXPECT_TRUE(absl::IsNotFound(status));
  EXPECT_EQ(std::string(status.message()), "kernixd at /x: no such blob");
}

TEST(StatusFromGrpcTest, DetailsThatAreNoneOfOursAreNotBelieved) {
  const grpc::Status status(grpc::INTERNAL, "message", "\xff\xff\xff");
  EXPECT_EQ(std::string(StatusFromGrpc(status, "peer").message()), "peer: message");
}

TEST(StatusFromGrpcTest, ABrokenConnectionIsALostDaemonAndAnAnswerIsNot) {
  EXPECT_TRUE(DaemonWasLost(StatusFromGrpc(grpc::Status(grpc::UNAVAILABLE, "Socket closed"), "peer")));
  EXPECT_TRUE(DaemonWasLost(grpc::Status(grpc::UNKNOWN, "Stream removed")));
  EXPECT_FALSE(DaemonWasLost(grpc::Status(grpc::DEADLINE_EXCEEDED, "")));
  EXPECT_FALSE(DaemonWasLost(grpc::Status::OK));
  v1::ErrorDetail detail;
  detail.set_kind(v1::ErrorDetail::INTERNAL);
  EXPECT_FALSE(DaemonWasLost(WithDetail(grpc::INTERNAL, "a bug", detail)));
}

}  // namespace
}  // namespace kernix
