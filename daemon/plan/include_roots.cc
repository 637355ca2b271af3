// SPDX-License-Identifier: Apache-2.0
#include "daemon/plan/include_roots.h"

#include <string_view>
#include <utility>

#include "common/base/paths.h"
#include "common/base/strings.h"
#include "common/wire/input_root.h"
#include "daemon/exec/action_digest.h"
#include "daemon/plan/plan.h"

namespace kernix::build {
namespace {

// Numbers and lengths are written with a fixed width, so that no two lists give the same text.
void AddNumber(std::string& text, uint64_t number) {
  for (int shift = 0; shift < 64; shift += 8) text += static_cast<char>(number >> shift);
}

Digest DigestOfList(const BuildRequest& request) {
  std::string text;
  AddNumber(text, request.include_root_count);
  for (const HeaderRef& header : request.headers) {
    AddNumber(text, header.include_root);
    AddNumber(text, header.path.size());
    text += header.path;
    text += header.digest.Raw();
    AddNumber(text, header.size);
  }
  return DigestOf(text);
}

// If headers lie above a root, the root itself must exist, or paths that go through it cannot be resolved.
std::string RootMarker(const BuildRequest& request, uint32_t root) {
  return StrCat(IncludeRootFolder(request, root), "/.keep").substr(TopOfIncludeRoot(root).size() + 1);
}

void AddMarkers(const BuildRequest& request, std::vector<RootTree>& roots) {
  std::vector<bool> has_header_inside(roots.size());
  for (const HeaderRef& header : request.headers) {
    if (!header.path.starts_with("../")) has_header_inside[header.include_root] = true;
  }
  for (uint32_t root = 0; root < roots.size(); ++root) {
    if (request.root_climbs[root] == 0 || has_header_inside[root]) continue;
    roots[root].files.push_back(exec::MakeInput(RootMarker(request, root), ""));
  }
}

}  // namespace

std::string TopOfIncludeRoot(uint32_t index) { return StrCat(kIncludeRootsFolder, "/", index); }

std::string IncludeRootFolder(const BuildRequest& request, uint32_t index) {
  std::string folder = TopOfIncludeRoot(index);
  for (int i = request.root_climbs[index]; i > 0; --i) StrAppend(&folder, "/", kClimbFolder);
  return folder;
}

IncludeRootsPtr MakeIncludeRoots(const BuildRequest& request) {
  auto made = std::make_shared<IncludeRoots>();
  made->list = DigestOfList(request);
  made->roots.resize(request.include_root_count);
  for (const HeaderRef& header : request.headers) {
    const size_t top = TopOfIncludeRoot(header.include_root).size() + 1;
    made->roots[header.include_root].files.push_back(
        {NormalizePath(HeaderName(request, header)).substr(top), {header.digest, header.size}});
  }
  AddMarkers(request, made->roots);
  for (RootTree& root : made->roots) root.digest = exec::MerkleTree(root.files).Digest();
  return made;
}

namespace {

// The id of the `copy`-th root (from 0) with these files in one build.
Digest IdOf(const Digest& files, uint64_t copy) {
  if (copy == 0) return files;
  return CanonicalHasher("kernix-header-tree-copy").Field("files", files).Field("copy", copy).Finish();
}

exec::InputTreePtr MakeTree(std::vector<exec::InputFile> files, const HeaderContents& contents, uint64_t& bytes) {
  std::string_view previous;
  for (exec::InputFile& file : files) {
    bytes += NewFolders(file.path, previous) * kBlockBytes;
    previous = file.path;
    if (file.content == nullptr) file.content = contents.at(file.digest.hash);
    bytes += file.content->size() + kBlockBytes;
  }
  return std::make_shared<exec::InputTree>(std::move(files));
}

}  // namespace

std::vector<exec::InputTreePtr> TreesOf(const std::vector<const RootTree*>& roots, const HeaderContents& contents,
                                        exec::KeptTrees& kept) {
  absl::flat_hash_map<Digest, uint64_t> copies;
  std::vector<exec::InputTreePtr> trees;
  for (const RootTree* root : roots) {
    if (root->files.empty()) continue;
    const Digest id = IdOf(root->digest.hash, copies[root->digest.hash]++);
    exec::InputTreePtr tree = kept.Find(id);
    if (tree == nullptr) {
      uint64_t bytes = 0;
      tree = MakeTree(root->files, contents, bytes);
      tree = kept.Keep(id, std::move(tree), bytes);
    }
    trees.push_back(std::move(tree));
  }
  return trees;
}

}  // namespace kernix::build
