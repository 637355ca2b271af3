// SPDX-License-Identifier: Apache-2.0
//
// What an engine, or whoever may write to it, can do to a shared kernixd that asks it. The engine is real; the attacker
// writes what it likes into it, and changes its answers on their way.
#include <google/protobuf/message.h>
#include <google/protobuf/unknown_field_set.h>
#include <signal.h>

#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "build/bazel/remote/execution/v2/remote_execution.pb.h"
#include "common/base/strings.h"
#include "common/wire/statement.h"
#include "common/wire/statement.pb.h"
#include "daemon/remote/shared_results.h"
#include "daemon/remote/upstream.h"
#include "tests/security/security_fixture.h"
#include "tests/support/engine/casd_process.h"
#include "tests/support/engine/fault_proxy.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

namespace reapi = build::bazel::remote::execution::v2;

constexpr char kSigned[] = "12 results with trusted_keys";
constexpr char kAny[] = "13 results of any engine";

// What signatures cover: see common/wire/statement.h.
constexpr char kSignedPrefix[] = "kernix-shared-result\n";

constexpr char kSource[] = "int shared_by_nodes = 7;";

using Envelope = internal::SignedStatement;
using Statement = internal::Statement;

Statement StatementIn(const Envelope& envelope) {
  Statement statement;
  EXPECT_TRUE(statement.ParseFromString(envelope.statement()));
  return statement;
}

class EngineTest : public SecurityTest {
 protected:
  EngineTest() {
    owner_ = MakeKey("owner");
    mallory_ = MakeKey("mallory");
    StartNode(StrCat("write = true\nsigning_key_file = \"", Path("owner.pem"), "\""));
    honest_ = LoadOf(kSource);
    EXPECT_TRUE(honest_.result) << Answer(honest_);
    if (honest_.result) artifact_ = client_->Fetch(honest_.result->artifact_digest()).value_or("");
    EXPECT_TRUE(LoadOf("int another = 8;").result);
    StopNode();
  }

  struct Key {
    std::string file;
    std::string text;  // as trusted_keys has it
  };

  Key MakeKey(const std::string& name) const {
    const std::string path = Path(name + ".pem");
    RunAs(0, {"/bin/sh", "-c", StrCat("umask 077; openssl genpkey -algorithm ed25519 -out ", path)});
    const std::string text =
        RunAs(0, {"/bin/sh", "-c", StrCat("openssl pkey -in ", path, " -pubout | grep -v -- ----- | tr -d '\\n'")})
            .output;
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(chown(path.c_str(), TheUsers().service, TheUsers().service), 0);
    return {path, text};
  }

  // A kernixd with an empty store that asks the engine.
  void StartNode(const std::string& settings) {
    const std::string store = MakeFolder(StrCat("store", ++stores_), TheUsers().service, 0750);
    node_ = Start(Config(store, StrCat("[upstream]\naddress = \"", proxy_.address(), "\"\n", settings), false));
    ASSERT_THAT(node_->AwaitReady(), IsOk());
    client_ = Connect(TheUsers().member);
  }
  // It has written everything when this returns.
  void StopNode() {
    client_.reset();
    node_->Signal(SIGTERM);
    EXPECT_EQ(node_->AwaitExit(), 0) << node_->Log();
  }

  server::LoadOutcome LoadOf(const std::string& source) { return Load(*client_, CppKernel(source)); }

  // Each answer about a result's statement gets another statement, which the engine has.
  void Swap(std::function<void(Envelope&)> change) {
    proxy_.Inject({.method = "GetActionResult",
                   .times = 0,
                   .change = [this, change = std::move(change)](google::protobuf::Message& message) {
                     for (auto& file : *static_cast<reapi::ActionResult&>(message).mutable_output_files()) {
                       if (file.path() == "statement") SwapBlob(*file.mutable_digest(), change);
                     }
                   }});
  }
  void ChangeAnswers(std::function<void(reapi::ActionResult&)> change) {
    proxy_.Inject({.method = "GetActionResult",
                   .times = 0,
                   .change = [change = std::move(change)](google::protobuf::Message& message) {
                     change(static_cast<reapi::ActionResult&>(message));
                   }});
  }

  void SwapBlob(reapi::Digest& digest, const std::function<void(Envelope&)>& change) {
    const exec::BlobDigest old{*Digest::FromHex(digest.hash()), static_cast<uint64_t>(digest.size_bytes())};
    Envelope envelope;
    EXPECT_TRUE(envelope.ParseFromString(std::string(*direct_->Read({old}, uint64_t{1} << 30).value().front())));
    change(envelope);
    const exec::BlobDigest put = Put(envelope.SerializeAsString());
    digest.set_hash(put.hash.Hex());
    digest.set_size_bytes(static_cast<int64_t>(put.size));
  }

  exec::BlobDigest Put(const std::string& bytes) {
    const exec::BlobDigest digest = exec::BlobDigestOf(bytes);
    EXPECT_THAT(direct_->Write({{digest, exec::MakeContent(bytes)}}), IsOk());
    return digest;
  }

  // The artifact with the attacker's mark where nothing checks it: at the end.
  std::string Evil() const { return artifact_ + "mallory was here"; }

  // The statement names the attacker's artifact instead.
  void NameEvil(Envelope& envelope) {
    Statement statement = StatementIn(envelope);
    const exec::BlobDigest evil = Put(Evil());
    for (auto& file : *statement.mutable_file()) {
      file.set_digest(evil.hash.Raw());
      file.set_size(evil.size);
    }
    envelope.set_statement(statement.SerializeAsString());
  }

  void SignAsMallory(Envelope& envelope) const {
    const auto key = SigningKey::Read(Env::Posix(), mallory_.file);
    ASSERT_THAT(key, IsOk());
    envelope.clear_signature();
    Envelope::Signature& signature = *envelope.add_signature();
    signature.set_public_key(key->public_key());
    signature.set_signature(key->Sign(kSignedPrefix + envelope.statement()));
  }

  std::string TrustsOwner() const { return StrCat("trusted_keys = [\"", owner_.text, "\"]"); }

  // A new node loads, and must get what it would build: "" or what went wrong. `builds`: it takes nothing of the
  // engine.
  std::string Evidence(const std::string& settings, bool builds = true) {
    StartNode(settings);
    const server::LoadOutcome outcome = LoadOf(kSource);
    std::string evidence = Canaries();
    if (evidence.empty()) evidence = SecretIn(Answer(outcome) + node_->Log());
    if (evidence.empty() && !outcome.result) evidence = StrCat("it does not load: ", Answer(outcome));
    if (evidence.empty() && client_->Fetch(outcome.result->artifact_digest()).value_or("") != artifact_) {
      evidence = "the load got the attacker's artifact";
    }
    if (evidence.empty() && outcome.result->from_upstream() == builds) {
      evidence = builds ? "the result was taken" : "the result was not taken";
    }
    peak_ = PeakBytes();
    StopNode();
    return evidence;
  }

  uint64_t PeakBytes() const {
    std::ifstream status(StrCat("/proc/", node_->pid(), "/status"));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with("VmHWM:")) return std::stoull(line.substr(6)) * 1024;
    }
    return UINT64_MAX;
  }

  void AttackSigned(const std::string& what, std::function<void(Envelope&)> change) {
    Swap(std::move(change));
    Judge(kSigned, what, Evidence(TrustsOwner()));
    proxy_.Clear();
  }

  testing::CasdProcess engine_;
  testing::FaultProxy proxy_{engine_.address()};
  const std::unique_ptr<remote::Upstream> direct_ =
      remote::Upstream::Open(Env::Posix(), {.address = engine_.address()}).value();
  Key owner_, mallory_;
  int stores_ = 0;
  uint64_t peak_ = 0;
  std::unique_ptr<KernixdProcess> node_;
  std::unique_ptr<server::TestClient> client_;
  server::LoadOutcome honest_;
  std::string artifact_;
};

TEST_F(EngineTest, OnlyWhatATrustedKeyHasSignedIsTaken) {
  JudgeTwin(kSigned, "the result that another node has signed", Evidence(TrustsOwner(), /*builds=*/false));
  AttackSigned("a statement without a signature", [](Envelope& envelope) { envelope.clear_signature(); });
  AttackSigned("another artifact, unsigned", [this](Envelope& envelope) {
    NameEvil(envelope);
    envelope.clear_signature();
  });
  AttackSigned("another artifact, under the old signature", [this](Envelope& envelope) { NameEvil(envelope); });
  AttackSigned("another artifact, signed by a key that is not listed", [this](Envelope& envelope) {
    NameEvil(envelope);
    SignAsMallory(envelope);
  });
  AttackSigned("another artifact, signed by that key in the name of a listed one", [this](Envelope& envelope) {
    const std::string listed = envelope.signature(0).public_key();
    NameEvil(envelope);
    SignAsMallory(envelope);
    envelope.mutable_signature(0)->set_public_key(listed);
  });
  AttackSigned("the right signature between wrong ones, of a changed statement", [this](Envelope& envelope) {
    const Envelope::Signature right = envelope.signature(0);
    NameEvil(envelope);
    SignAsMallory(envelope);
    *envelope.add_signature() = right;
  });
  AttackSigned("a signature of nothing", [this](Envelope& envelope) {
    envelope.clear_statement();
    SignAsMallory(envelope);
  });
  AttackSigned("no statement, and a listed key without a signature", [](Envelope& envelope) {
    envelope.clear_statement();
    envelope.mutable_signature(0)->clear_signature();
  });
}

// A signed statement of one key under another one's address, as whoever may write can put it.
TEST_F(EngineTest, ASignedResultIsOfOneKey) {
  std::vector<std::string> statements;  // of the other kernel
  Swap([&](Envelope& envelope) { statements.push_back(envelope.SerializeAsString()); });
  StartNode(TrustsOwner());
  const server::LoadOutcome other = LoadOf("int another = 8;");
  JudgeTwin(kSigned, "the other kernel", other.result && other.result->from_upstream() ? "" : Answer(other));
  StopNode();
  proxy_.Clear();
  ASSERT_FALSE(statements.empty());
  AttackSigned("the signed result of another kernel",
               [&](Envelope& envelope) { envelope.ParseFromString(statements.front()); });
}

TEST_F(EngineTest, BytesAreThoseOfTheirDigest) {
  for (const char* method : {"BatchReadBlobs", "Read"}) {
    proxy_.Inject({.method = method, .times = 0, .change = [this](google::protobuf::Message& message) {
                     if (auto* batch = dynamic_cast<reapi::BatchReadBlobsResponse*>(&message)) {
                       for (auto& blob : *batch->mutable_responses()) {
                         if (blob.data() == artifact_) blob.set_data(Evil());
                       }
                     }
                   }});
  }
  Judge(kSigned, "other bytes than a signed digest has", Evidence(TrustsOwner()));
}

// Without trusted_keys, whoever may write is believed; but nothing of what they write may reach further than a result.
TEST_F(EngineTest, NoNameLeadsOutOfAResult) {
  JudgeTwin(kAny, "the result of another node", Evidence("", /*builds=*/false));
  const auto attack = [&](const std::string& what, std::function<void(reapi::ActionResult&)> change) {
    ChangeAnswers(std::move(change));
    Judge(kAny, what, Evidence(""));
    proxy_.Clear();
  };
  for (const std::string& path : {std::string("../statement"), Path("canary/ran"), std::string("../../canary/ran"),
                                  std::string("statement/"), std::string("statement\0x", 11)}) {
    attack(StrCat("an output at ", path), [&](reapi::ActionResult& result) {
      for (auto& file : *result.mutable_output_files()) {
        if (file.path() == "statement") file.set_path(path);
      }
    });
  }
  attack("an output that is a link to the secret", [this](reapi::ActionResult& result) {
    if (result.output_files_size() == 0 || result.output_files(0).path() != "statement") return;
    result.clear_output_files();
    const std::string target = Path("secret/file.txt");
    // OutputSymlink's fields "path" and "target"; kernixd does not speak of links.
    const std::string link = StrCat("\x0a\x09statement\x12", std::string(1, static_cast<char>(target.size())), target);
    for (const int field : {10, 12}) {  // output_file_symlinks, output_symlinks
      result.GetReflection()->MutableUnknownFields(&result)->AddLengthDelimited(field, link);
    }
  });
  Swap([this](Envelope& envelope) {
    Statement statement = StatementIn(envelope);
    for (auto& file : *statement.mutable_file()) file.set_name(Path("canary/ran"));
    *statement.add_file() = statement.file(0);
    statement.mutable_file(statement.file_size() - 1)->set_name("../../../canary/too");
    envelope.set_statement(statement.SerializeAsString());
  });
  Judge(kAny, "files of a statement that lie elsewhere", Evidence(""));
  proxy_.Clear();
  Swap([this](Envelope& envelope) {
    Statement statement = StatementIn(envelope);
    const exec::BlobDigest script = Put(StrCat("#!/bin/sh\ntouch ", Path("canary/ran"), "\n"));
    for (auto& file : *statement.mutable_file()) {
      file.set_digest(script.hash.Raw());
      file.set_size(script.size);
    }
    envelope.set_statement(statement.SerializeAsString());
  });
  Judge(kAny, "a script instead of an artifact, and of each step's outputs", Evidence(""));
}

// A node that takes a result tells by this that it has a header of that name and content. The attacker guesses the
// content of a file that only the service can read.
TEST_F(EngineTest, NoListOfHeadersHasAnotherFileRead) {
  const std::string secret = Env::Posix().ReadFile(Path("secret/file.txt")).value();
  std::string raw_key;  // whoever may write may also read
  Swap([&](Envelope& envelope) { raw_key = StatementIn(envelope).key(); });
  JudgeTwin(kAny, "the result of another node", Evidence("", /*builds=*/false));
  proxy_.Clear();
  const Digest key = Digest::FromRaw(raw_key).value();
  remote::SharedResults mallory(*direct_, {});
  const auto put = [&](std::vector<StatedHeader> headers) {
    remote::SharedResult result{.headers = std::move(headers), .files = {}};
    result.files.emplace_back("artifact", exec::MakeContent(Evil()));
    ASSERT_THAT(mallory.Put(key, result, nullptr), IsOk());
  };
  const std::string climb = "../../../../../../../../../../..";
  for (const std::string& name :
       {Path("secret/file.txt"), climb + Path("secret/file.txt"),
        StrCat("kernix-host-0/", climb, Path("secret/file.txt")), StrCat("kernix-host-0", Path("secret/file.txt")),
        StrCat("kernix-host-0//", Path("secret/file.txt")), StrCat("./", Path("secret/file.txt")),
        StrCat("kernix-host-0/./", climb, Path("secret/file.txt"))}) {
    engine_.LoseEverything();
    put({{name, DigestOf(secret)}});
    Judge(kAny, StrCat("a list with ", name), Evidence(""));
  }
  engine_.LoseEverything();
  put({});
  StartNode("");
  const server::LoadOutcome outcome = LoadOf(kSource);
  JudgeTwin(kAny, "the same result without a header",
            outcome.result && outcome.result->from_upstream() ? "" : Answer(outcome));
  StopNode();
}

TEST_F(EngineTest, SizesThatLieTakeNoMemory) {
  constexpr uint64_t kMuch = uint64_t{1} << 30;
  for (const uint64_t size : {uint64_t{900} << 20, uint64_t{1} << 40, uint64_t{1} << 62, UINT64_MAX}) {
    Swap([size](Envelope& envelope) {
      Statement statement = StatementIn(envelope);
      for (auto& file : *statement.mutable_file()) file.set_size(size);
      envelope.set_statement(statement.SerializeAsString());
    });
    std::string evidence = Evidence("");
    if (evidence.empty() && peak_ > kMuch) evidence = StrCat("kernixd took ", peak_, " bytes");
    Judge(kAny, StrCat("files of ", size, " bytes"), evidence);
    proxy_.Clear();
    ChangeAnswers([size](reapi::ActionResult& result) {
      for (auto& file : *result.mutable_output_files())
        file.mutable_digest()->set_size_bytes(static_cast<int64_t>(size));
    });
    evidence = Evidence("");
    if (evidence.empty() && peak_ > kMuch) evidence = StrCat("kernixd took ", peak_, " bytes");
    Judge(kAny, StrCat("statements and lists of ", size, " bytes"), evidence);
    proxy_.Clear();
  }
}

}  // namespace
}  // namespace kernix::security
