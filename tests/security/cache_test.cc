// SPDX-License-Identifier: Apache-2.0
//
// What another member's modules are to a member: neither listed, nor fetched, nor found in the store; and the store's
// own files, which nobody but the service opens.
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/strings.h"
#include "tests/security/security_fixture.h"
#include "tests/support/test_util.h"

namespace kernix::security {
namespace {

constexpr char kEntries[] = "6 lists and fetches";
constexpr char kFiles[] = "7 the store's files";

// A descriptor of a file with a lock on it, in a process of another user that lasts as long as this.
class LockHolder {
 public:
  LockHolder(uid_t user, const std::vector<std::string>& paths) {
    std::array<int, 2> ends = {-1, -1};
    if (pipe2(ends.data(), O_CLOEXEC) != 0) return;
    const UniqueFd from(ends[0]);
    UniqueFd to(ends[1]);
    child_ = fork();
    if (child_ == 0) Hold(user, paths, to.get());
    to = UniqueFd();
    if (read(from.get(), &locked_, sizeof locked_) != sizeof locked_) locked_ = 0;
  }
  ~LockHolder() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  LockHolder(const LockHolder&) = delete;
  LockHolder& operator=(const LockHolder&) = delete;

  // On how many files it has one.
  int locked() const { return locked_; }

 private:
  [[noreturn]] static void Hold(uid_t user, const std::vector<std::string>& paths, int report) {
    int locked = 0;
    const bool reported = Become(user) && [&] {
      for (const std::string& path : paths) locked += Lock(path.c_str()) ? 1 : 0;
      return write(report, &locked, sizeof locked) == sizeof locked;
    }();
    if (reported) pause();
    _exit(1);
  }

  static bool Lock(const char* path) {
    const int fd = open(path, O_RDONLY);
    struct flock lock = {};
    lock.l_type = F_RDLCK;
    return fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0;
  }

  pid_t child_ = -1;
  int locked_ = 0;
};

class CacheTest : public SecurityTest {
 protected:
  CacheTest() {
    Serve();
    other_ = Connect(TheUsers().other);
    Kernel kernel = CppKernel("int of_the_other = 4711;");
    kernel.request.set_name("others_model");
    others_ = Load(*other_, kernel);
    EXPECT_TRUE(others_.result) << Answer(others_);
    mine_ = Load(member(), CppKernel("int mine = 4712;"));
    EXPECT_TRUE(mine_.result) << Answer(mine_);
  }

  static std::vector<v1::CacheEntry> List(server::TestClient& client, const std::string& name = "") {
    grpc::ClientContext context;
    v1::ListCacheRequest request;
    request.set_name(name);
    v1::ListCacheResponse response;
    const grpc::Status status = client.stub().ListCache(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return {response.entry().begin(), response.entry().end()};
  }

  static std::string OwnedBy(uid_t owner, const std::vector<v1::CacheEntry>& entries) {
    std::string names;
    for (const v1::CacheEntry& entry : entries) {
      if (entry.owner() == owner) StrAppend(&names, " ", entry.name());
    }
    return names;
  }

  // What `user` finds by walking the store.
  std::vector<std::string> ReadableFiles(uid_t user) const {
    std::istringstream lines(RunAs(user, {"/usr/bin/find", store(), "-type", "f", "-readable"}).output);
    std::vector<std::string> files;
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with(store())) files.push_back(line);
    }
    return files;
  }

  // The member's artifact, and the number of the layout, which only a start reads.
  bool IsForMembers(const std::string& file) const {
    return file == mine_.result->artifact_path() || file == store() + "/version";
  }

  std::vector<std::string> AllFiles() const {
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(store())) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    return files;
  }

  std::unique_ptr<server::TestClient> other_;
  server::LoadOutcome others_;
  server::LoadOutcome mine_;
};

TEST_F(CacheTest, NobodyElsesEntriesAreListed) {
  const uid_t other = TheUsers().other;
  Judge(kEntries, "ListCache", OwnedBy(other, List(member())));
  Judge(kEntries, "ListCache by name", OwnedBy(other, List(member(), "others_model")));
  const std::string own = OwnedBy(TheUsers().member, List(member()));
  JudgeTwin(kEntries, "one's own, at once", own.empty() ? "nothing is listed" : "");
  const std::string all = OwnedBy(other, List(*Connect(0)));
  JudgeTwin(kEntries, "everybody's, for root", all.empty() ? "nothing is listed" : "");
}

TEST_F(CacheTest, NobodyElsesBuildIsTraced) {
  const std::string& key = others_.result->key();
  const auto steps = [&](server::TestClient& client) {
    grpc::ClientContext context;
    v1::GetTraceRequest request;
    request.set_key(key);
    v1::GetTraceResponse response;
    (void)client.stub().GetTrace(&context, request, &response);
    return response.trace().step_size();
  };
  Judge(kEntries, "GetTrace", steps(member()) > 0 ? "the steps of another one's build are told" : "");
  JudgeTwin(kEntries, "the trace of one's own build", steps(*other_) > 0 ? "" : "there is none");
}

TEST_F(CacheTest, NobodyElsesArtifactIsFetched) {
  const std::string& digest = others_.result->artifact_digest();
  const absl::StatusOr<std::string> fetched = member().Fetch(digest);
  Judge(kEntries, "FetchArtifact", fetched.ok() ? StrCat("fetched ", fetched->size(), " bytes") : "");
  const auto twin = [](const std::string& what, const absl::StatusOr<std::string>& content) {
    JudgeTwin(kEntries, what, content.ok() ? "" : content.status().ToString());
  };
  twin("one's own artifact", member().Fetch(mine_.result->artifact_digest()));
  twin("any artifact, for root", Connect(0)->Fetch(digest));
  // Who sends the very request owns an entry of it.
  Kernel same = CppKernel("int of_the_other = 4711;");
  same.request.set_name("mine_too");
  EXPECT_TRUE(Load(member(), same).result->cache_hit());
  twin("another's, once one has loaded the same", member().Fetch(digest));
}

TEST_F(CacheTest, NobodyElsesLoadExplainsAMiss) {
  const auto reason = [&](const std::string& source) {
    Kernel kernel = CppKernel(source);
    kernel.request.set_name("others_model");
    const auto outcome = Load(member(), kernel);
    return outcome.result ? outcome.result->miss_reason() : outcome.status.error_message();
  };
  const std::string first = reason("int of_the_other = 4712;");
  Judge(kEntries, "miss_reason", first == "new source" ? "" : first);
  const std::string second = reason("int of_the_other = 4713;");
  JudgeTwin(kEntries, "by one's own earlier load", second.ends_with(" changed") ? "" : second);
}

TEST_F(CacheTest, NobodyElsesEntryIsDropped) {
  const absl::StatusOr<uint64_t> dropped = member().Purge("others_model");
  Judge(kEntries, "PurgeCache", dropped.value_or(0) > 0 ? StrCat("dropped ", *dropped) : "");
  const absl::StatusOr<uint64_t> own = other_->Purge("others_model");
  JudgeTwin(kEntries, "one's own entry is dropped", own.value_or(0) == 1 ? "" : own.status().ToString());
}

TEST_F(CacheTest, NobodyElsesEntryIsPinned) {
  const auto pinned = [](server::TestClient& client) {
    grpc::ClientContext context;
    v1::PinCacheRequest request;
    request.set_name("others_model");
    v1::PinCacheResponse response;
    (void)client.stub().PinCache(&context, request, &response);
    return response.entries();
  };
  const uint64_t entries = pinned(member());
  Judge(kEntries, "PinCache", entries > 0 ? StrCat("pinned ", entries) : "");
  JudgeTwin(kEntries, "one's own entry is pinned", pinned(*other_) == 1 ? "" : "it is not");
}

TEST_F(CacheTest, TheStoreShowsAMemberHisArtifactsOnly) {
  std::string found;
  for (const std::string& file : ReadableFiles(TheUsers().member)) {
    if (!IsForMembers(file)) StrAppend(&found, " ", file.substr(store().size() + 1));
  }
  Judge(kFiles, "reading what lies in the store", found.empty() ? "" : "readable:" + found);
  found.clear();
  for (const std::string& file : ReadableFiles(TheUsers().stranger)) StrAppend(&found, " ", file);
  Judge(kFiles, "reading it as a stranger", found);
  const std::string path = mine_.result->artifact_path();
  const bool readable = As(TheUsers().member, [&path] { return access(path.c_str(), R_OK) == 0; });
  JudgeTwin(kFiles, "one's own artifact is readable", readable ? "" : path);
}

TEST_F(CacheTest, NoLockIsHeldOnTheStore) {
  // Artifacts may be locked as much as one likes.
  std::vector<std::string> files = AllFiles();
  std::erase_if(
      files, [this](const std::string& file) { return IsForMembers(file) || file == others_.result->artifact_path(); });
  EXPECT_GT(files.size(), 2u);
  const LockHolder holder(TheUsers().member, files);
  const server::LoadOutcome next = Load(*other_, CppKernel("int next = 1;"));
  const std::string effect = next.result ? "" : "; another member's load: " + Answer(next);
  Judge(kFiles, "locks on its files", holder.locked() > 0 ? StrCat("on ", holder.locked(), " files", effect) : "");
  JudgeTwin(kFiles, "another member loads meanwhile", next.result ? "" : Answer(next));
}

}  // namespace
}  // namespace kernix::security
