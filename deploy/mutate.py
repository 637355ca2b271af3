#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks one promise after another by a change of the sources, and runs the tests that must then fail.

    make mutate             # all of them; MUTANTS=word: those whose description holds it
    deploy/mutate.py        # only says which of them do not fit the sources any more

Run it by hand: each change builds a part of kernix again. It edits the working copy's files and puts them back.
"""

import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 400  # a test program that takes longer has not noticed either


class Mutant(NamedTuple):
    """One change, and who must notice it."""

    what: str
    file: str
    old: str  # occurs once in the file
    new: str
    program: str  # a C++ test program
    tests: str  # a filter of GoogleTest


MUTANTS = [
    Mutant("the toolchain's identity without the libraries of its programs", "daemon/toolchain/host_compiler.cc",
           "    libraries.insert(program->second.libraries.begin(), program->second.libraries.end());\n", "",
           "toolchain_test", "ToolchainTest.TheLibraries*"),
    Mutant("the key without its last step", "daemon/plan/load_key.cc",
           '  hasher.Field("step", last);\n', "", "plan_test", "*LoadKeyTest*"),
    Mutant("a flight that does not linger", "daemon/builder/flight.cc",
           "while (state_ == State::kBuilding && joins_", "while (false && state_ == State::kBuilding && joins_",
           "build_test", "FlightTest.*"),
    Mutant("paths that leave our own headers", "daemon/builder/files_read.cc",
           "folders.front() == kKernelHeaders;", "false;", "builder_test", "ClimbingTest*"),
    Mutant("lookups of a user without bound", "daemon/rpc/lookup_server.h",
           '"", kMaxPerUser}', '"", 0}', "server_test", "LookupServerTest.AUser*"),
    Mutant("lookups without patience's end", "daemon/rpc/lookup_server.cc",
           "asking_.front()->since() + options_.patience <= now",
           "asking_.front()->since() + std::chrono::hours(9) + options_.patience <= now",
           "server_test", "LookupServerTest.OneThat*"),
    Mutant("targets committed without the second check", "client/runtime/targets.cc",
           "(CheckAll(registry, changes, replace));\n  std::vector<Binding> bindings;",
           "(CheckAll(registry, {}, replace));\n  std::vector<Binding> bindings;",
           "client_local_test", "BindTargetsTest.*"),
    Mutant("files that are not synced", "common/os/posix_files.cc",
           "if (fsync(fd) != 0)", "if (fd < 0)", "cache_crash_test", "DurabilityTest.*"),
    Mutant("an index that is not synced", "daemon/cache/index_schema.cc",
           "synchronous = FULL", "synchronous = NORMAL", "cache_crash_test", "DurabilityTest.*"),
    Mutant("pins ignored", "daemon/cache/cache.cc",
           "if (pins_.contains(artifact) || !FirstLost().empty()) return;", "if (!FirstLost().empty()) return;",
           "cache_test", "CachePinTest.*"),
    Mutant("an executor that wakes nobody", "daemon/exec/local_executor.cc",
           "served.user;\n      job.changed.NotifyAll();\n", "served.user;\n", "exec_test", "*LocalExecutorTest*"),
    Mutant("a load memo that forgets where headers were looked for", "client/load/load_memo.cc",
           "searched_.insert(searched.begin(), searched.end())", "static_cast<void>(searched)",
           "client_local_test", "LoadInputsTest.*:LoadTest.AfterAHeader*"),
    Mutant("a load memo without the folders of failed look-ups", "client/headers/header_scan.cc",
           "    if (path) searched_.insert(Dirname(PathOf(*path)));\n", "",
           "client_local_test", "LoadTest.AfterAHeader*"),
    Mutant("nvcc's link flags read as g++'s", "client/load/compile_flags.cc",
           "traits.host_words_at_link(link_flags)", "link_flags",
           "client_local_test", "FlagFilesTest.*"),
    Mutant("plugins for everyone", "common/flags/host_tables.cc",
           'OwnDaemon("-specs=*|--specs=*|-fplugin=*|-fpass-plugin=*", kNamesFile, Meaning::kFileForKey)',
           'Anyone("-specs=*|--specs=*|-fplugin=*|-fpass-plugin=*", kAnyValue, Meaning::kFileForKey)',
           "toolchain_test", "FlagsTest.*"),
    Mutant("an address in the action cache with another salt", "daemon/remote/shared_results.cc",
           "action.set_salt(salt.Raw())", "action.set_salt(salt.Hex())", "remote_engine_test", "DocumentedResult*"),
    Mutant("an engine's bytes taken unseen", "daemon/remote/blob_transfer.cc",
           "  if (exec::BlobDigestOf(bytes) != digest) return WrongBytes(connection.options(), digest);\n", "",
           "remote_engine_test", "UpstreamFaultTest.OtherBytes*"),
    Mutant("an engine's token read once", "daemon/remote/token_file.cc",
           "settled_ && now == seen_", "now.path == path_", "remote_test", "TokenFileTest.*"),
    Mutant("a breaker that never opens", "daemon/remote/circuit_breaker.cc",
           "++failures_ < kFailuresToOpen", "++failures_ > 0", "remote_test", "CircuitBreakerTest.*"),
    Mutant("an engine's stream that is not picked up", "daemon/remote/execution.cc",
           "name_.empty() ? Start(context, action)", "true ? Start(context, action)",
           "remote_engine_test", "RemoteExecutorTest.AStream*"),
    Mutant("an engine that is not told that nobody waits", "daemon/remote/execution.cc",
           "  running.Abandon();\n", "", "remote_engine_test", "RemoteExecutorTest.ACancelled*"),
    Mutant("a word of a command left out of its digest", "daemon/exec/action_digest.cc",
           "for (const std::string& word : action.argv) command", "for (const std::string& word : action.argv)\n"
           "    if (&word != &action.argv.back()) command", "exec_test", "ActionDigestTest.*"),
    Mutant("a node without compilers that links with libraries of its own", "daemon/builder/linker.cc",
           " || toolchain->described != nullptr", "", "remote_build_test", "*AHostWithoutCompilersBuildsWhat*"),
    Mutant("a worker's headers taken for this node's", "daemon/builder/toolchain_headers.cc",
           "if (toolchain.described != nullptr) {", "if (false) {", "remote_build_test",
           "*AHostWithoutCompilersBuildsWhat*"),
    Mutant("a burst that workers get as a whole", "daemon/remote/placing_executor.cc",
           " && here >= there_wait_.WaitFor(action.jobs)", "", "remote_test", "PlacingExecutorTest.ABurst*"),
    Mutant("everybody an administrator", "daemon/transport/local_user.cc",
           "user == 0 || user == geteuid()", "user == 0 || user != 0", "server_test", "*LocalUserTest*"),
    Mutant("folders on the way that others may write to", "common/os/private_directory.cc",
           "(info.mode & (kWritableByGroup | kWritableByAll)) == 0", "(info.mode & kWritableByGroup) == 0",
           "common_test", "GuardedPath*"),
    Mutant("an artifact that others may write to is opened", "client/connection/artifact_file.cc",
           "constexpr mode_t kWritableByOthers = 0022", "constexpr mode_t kWritableByOthers = 0",
           "client_local_test", "ArtifactFileTest.*"),
    Mutant("damaged artifacts served", "daemon/cache/store_folder.cc",
           "  if (content != digest) return false;\n", "  static_cast<void>(content);\n", "cache_test",
           "*DamagedArtifact*"),
    Mutant("uploads taken for what they claim to be", "daemon/rpc/load_stream.cc",
           "if (DigestOf(content) != current_)", "if (content.empty() && DigestOf(content) != current_)",
           "server_test", "BlobReceiver.*"),
    Mutant("results of a tool that was replaced are kept", "daemon/builder/step_cache.cc",
           "  if (!Unchanged(env_, toolchain.files)) return;\n", "", "build_test", "StepCacheTest.*"),
    Mutant("a known load that forgets its toolchain", "daemon/builder/known_loads.cc",
           " && found->load->toolchain == toolchain ?", " ?", "build_test", "KnownLoads.*"),
    Mutant("the key without the number of a header's root", "daemon/plan/include_roots.cc",
           "made->roots[header.include_root].files.push_back(", "made->roots[0].files.push_back(", "plan_test",
           "*LoadKeyTest*"),
    Mutant("the key without our kernel headers", "daemon/plan/plan.cc",
           "  trees->push_back({kKernelHeaders, KernelHeaderTree().digest, nullptr});\n", "", "plan_test",
           "*LoadKeyTest*"),
    Mutant("files that are renamed before they are written", "common/os/posix_files.cc",
           "absl::Status status = FillAndSync(std::move(fd), data, mode, temporary);\n"
           "  if (status.ok()) status = Rename(temporary, path);",
           "absl::Status status = Rename(temporary, path);\n"
           "  if (status.ok()) status = FillAndSync(std::move(fd), data, mode, temporary);",
           "cache_crash_test", "DurabilityTest.*"),
    Mutant("folders that are not synced", "common/os/posix_files.cc",
           "  return SyncDirectory(Dirname(path));\n", "  return absl::OkStatus();\n", "cache_crash_test",
           "DurabilityTest.*"),
    Mutant("a download of any content", "client/connection/artifact_file.cc",
           "if (content.ok() && DigestOf(*content) == digest) return content;", "if (content.ok()) return content;",
           "client_integration_test", "ClientRestartTest.*"),
    Mutant("uses lost when a flush fails", "daemon/cache/journal.cc",
           "    use.hits += from.hits;\n", "", "cache_test", "CacheTest.AFlushThatFails*"),
    Mutant("a daemon that lends nothing", "daemon/app/daemon.cc",
           ".lend_time = kLendTime,", ".lend_time = 0 * kLendTime,", "kernixd_test", "KernixdMembersTest.WhatAMember*"),
    Mutant("a lock on a file that was removed", "common/os/posix_files.cc",
           "if (StillNamed(fd.get(), path)) return", "static_cast<void>(&StillNamed);\n    return", "common_test",
           "PosixLocksTest.*"),
    Mutant("the memo's key without the working folder", "client/load/load_memo.cc",
           "  fields.Add(AbsolutePath(\".\"));", "  static_cast<void>(&AbsolutePath);", "client_local_test",
           "MemoKeyTest.*"),
    Mutant("a known load of flags that name files", "daemon/builder/known_loads.cc",
           "return !request.flag_files.empty() ||", "return", "builder_test", "*AFileOfAFlagThatHasChanged*"),
    Mutant("a compiled preamble that loses the state of a pragma", "daemon/plan/compiled_preamble.cc",
           "return open == OpenPragmas();", "return true;", "plan_test", "CompiledPreambleTest.*"),
    Mutant("a compiled preamble that brings back macros", "daemon/plan/compiled_preamble.cc",
           " && !UndefinesPredefined(preprocessed)", "", "plan_test", "CompiledPreambleTest.*"),
    Mutant("templates that add device code unseen", "daemon/language/read/device_code.cc",
           "if (has_templates && (!is_function", "if (false && (!is_function", "language_test", "DeviceCodeTest.*"),
    Mutant("host functions that name other things of the device", "daemon/language/read/device_code.cc",
           "for (const std::string_view name : names) hasher.Field(\"name\", name);", "",
           "language_test", "DeviceCodeTest.*"),
    Mutant("host functions that are declared for devices", "daemon/language/read/device_code.cc",
           "braces.push_back(BeginsClass(part));", "braces.push_back(true);", "language_test", "DeviceCodeTest.*"),
    Mutant("unused variables that only cicc warns of", "daemon/language/read/device_code.cc",
           "AddList(hasher, \"unused\", body.unused);", "", "language_test", "DeviceCodeTest.*"),
    Mutant("debug information with another text's lines", "daemon/plan/nvcc_phases.cc",
           "word.starts_with(\"-g\") || word.starts_with(\"-fsan", "word.starts_with(\"-fsan", "plan_test",
           "NvccPhasesTest.*"),
    Mutant("warnings with another text's lines", "daemon/builder/nvcc_compiler.cc",
           "if (!compiled.printed.empty() && MayHoldOtherLines(phases))", "if (false && MayHoldOtherLines(phases))",
           "build_test", "StepRunnerTest.*"),
    Mutant("what takes longest does not begin first", "daemon/builder/build_rank.cc",
           "since_boot - std::min(since_boot, work_before)", "since_boot - 0 * work_before", "builder_test",
           "*TookLong*"),
    Mutant("files watched without a second check", "common/os/file_check.cc",
           "if (FileCheck(env_).Unchanged(files)) known_", "known_", "common_test", "FileCheckerTest.*"),
    Mutant("watches that miss what is put in a file's place", "common/os/posix_watch.cc",
           "IN_MODIFY | IN_ATTRIB | ", "IN_MODIFY | ", "common_test", "*PosixWatch*"),
    Mutant("watches that miss folders on the way", "common/os/posix_watch.cc",
           "kFolderEvents = IN_MOVE_SELF | ", "kFolderEvents = ", "common_test", "*PosixWatch*"),
    Mutant("queries of a load that have a time limit each", "daemon/builder/upstream_budget.h",
           "if (--queries_ == 0) left_ -= env_.Now() - since_;", "--queries_;", "build_test", "UpstreamBudgetTest.*"),
    Mutant("queries at the same time that are counted twice", "daemon/builder/upstream_budget.h",
           "if (queries_++ == 0) since_ = env_.Now();", "++queries_, since_ = env_.Now();", "build_test",
           "UpstreamBudgetTest.*"),
    Mutant("a step's query that has a time limit of its own", "daemon/builder/plan_runner.cc",
           "    how.observer = &run;\n", "    how.observer = &run;\n    how.looks = nullptr;\n", "sharing_test",
           "*ALoadThatHasWaited*"),
    Mutant("a phase's look that has a time limit of its own", "daemon/builder/nvcc_compiler.cc",
           "    run.outputs = held_;\n", "    run.outputs = held_;\n    run.looks = nullptr;\n", "sharing_test",
           "*NvccsPhases*"),
    Mutant("a load that forgets what its lookup has waited", "daemon/builder/flights.cc",
           "? query.mapped().budget : nullptr", "? std::make_shared<UpstreamBudget>(env_, Duration(9'999)) : nullptr",
           "sharing_test", "*ALoadHasWhatItsLookup*"),
    Mutant("a wait for another node's build that takes the time for queries", "daemon/builder/upstream_cache.cc",
           "    if (!wait.settles) wanted.budget->Renew();\n", "", "sharing_test", "*AWaitForAnotherNodes*"),
    Mutant("a write that a renewed token does not try again", "daemon/builder/upstream_cache.cc",
           "absl::IsUnauthenticated(status) && token != 0", "false && token != 0", "sharing_test", "*ExpiredToken*"),
    Mutant("a write that is tried again with a refused token", "daemon/builder/upstream_cache.cc",
           "    if (token == refused_token) continue;\n", "", "sharing_test", "*ATokenThatTheEngineHasRefused"),
    Mutant("a load with compilers that waits for workers", "daemon/builder/flights.cc",
           "load.effort == Effort::kBuild && load.needs_workers()};", "false};", "builder_test", "SharedBuildTest.*"),
    Mutant("what is known of a runtime header taken for another's", "daemon/builder/runtime_knowledge.cc",
           "    for (const auto& [path, text] : lesson.outputs) hasher.Field(path, *text);\n",
           "    static_cast<void>(lesson);\n", "build_test", "RuntimeKnowledgeTest.*"),
    Mutant("a lesson about one pass taken for one about another", "daemon/builder/runtime_knowledge.cc",
           "    hasher.Field(\"pass\", pass);\n", "", "build_test", "RuntimeKnowledgeTest.*"),
    Mutant("a step of other device code that is taken", "daemon/builder/step_cache.cc",
           "    if (code) hasher.Field(\"device code\", *code);\n", "", "build_test", "StepCacheTest.*"),
    Mutant("positions that are told whenever they change", "daemon/exec/local_executor.cc",
           "steady_clock::now() + between_tellings_;", "steady_clock::now();", "exec_test", "*DoesNotTellAll*"),
    Mutant("positions whose last change is not told", "daemon/exec/local_executor.cc",
           "    while (!stopping_ && !has_news_) queue_changed_.Wait(mutex_);\n",
           "    while (!stopping_ && (!has_news_ || std::chrono::steady_clock::now() < earliest)) {\n"
           "      has_news_ = false;\n      queue_changed_.Wait(mutex_);\n    }\n",
           "exec_test", "LocalExecutorTest.*"),
    Mutant("nvcc's own programs that are staged the sources", "daemon/plan/nvcc_phases.cc",
           "    KeepWhatIsRead(step.action);\n", "", "plan_test", "NvccPhasesTest.*"),
    Mutant("nvcc's own programs without their toolkit", "daemon/plan/nvcc_phases.cc",
           "return word.find(folder) != std::string::npos; });\n    });", "return word == folder; });\n    });",
           "plan_test", "NvccPhasesTest.*"),
    Mutant("a compiled preamble that takes the pragmas of the code", "daemon/plan/compiled_preamble.cc",
           "const size_t end = BeforeOpenedPragmas(text, *line);", "const size_t end = *line;", "plan_test",
           "CompiledPreambleTest.*"),
    Mutant("code whose own #line nobody finds", "daemon/language/read/leading_includes.cc",
           "    if (ComesNext(directive.front())) found_->code_line", "    if (false) found_->code_line",
           "language_test", "LeadingIncludesTest.*"),
    Mutant("a #line in the code taken for its first", "daemon/language/read/leading_includes.cc",
           "if (ComesNext(directive.front()))", "if (found_)", "language_test", "LeadingIncludesTest.*"),
    Mutant("host bodies that a cicc with errors for warnings does not see", "daemon/plan/nvcc_phases.cc",
           "compile_.nvcc->host_bodies_count || MindsUnused(step.action.argv);", "compile_.nvcc->host_bodies_count;",
           "plan_test", "NvccPhasesTest.*"),
    Mutant("host bodies that a shared kernixd does not see", "daemon/plan/nvcc_phases.cc",
           "compile_.nvcc->host_bodies_count || MindsUnused(step.action.argv);", "MindsUnused(step.action.argv);",
           "plan_test", "NvccPhasesTest.*"),
    Mutant("kernels of a distribution's nvcc whose programs are not found", "daemon/plan/nvcc_phases.cc",
           "programs == ProgramFolder::kBesideNvcc ?", "programs != ProgramFolder::kBesideNvcc || true ?", "plan_test",
           "NvccPhasesTest.*"),
    Mutant("device code that is marked by [[...]]", "daemon/language/read/device_code.cc",
           "if (!IsAttribute(tokens[at]) && !has_brackets) continue;", "if (!IsAttribute(tokens[at])) continue;",
           "language_test", "DeviceCodeTest.*"),
    Mutant("kernels with auto parameters", "daemon/language/read/device_code.cc",
           "has_templates = true;  // `void k(auto x)`", "static_cast<void>(0);", "language_test", "DeviceCodeTest.*"),
    Mutant("literals that look like several tokens", "daemon/language/read/device_code.cc",
           "for (size_t size = token.text.size(); size > 0; size >>= 7)", "for (size_t size = 0; size > 0; size >>= 7)",
           "language_test", "DeviceCodeTest.*"),
    Mutant("code that asks for its line", "daemon/language/read/device_code.cc",
           "      if (AsksForItsLine(token)) return std::nullopt;\n", "", "language_test", "DeviceCodeTest.*"),
    Mutant("a host function whose virtual functions devices have", "daemon/language/read/device_code.cc",
           "if (token.Is(\"virtual\")) may_be_added_unnamed_ = true;", "", "language_test", "DeviceCodeTest.*"),
    Mutant("a socket's file before anybody listens", "daemon/transport/listener.cc",
           "const std::string staged = StagedPathOf(options.path);", "const std::string staged = options.path;",
           "server_test", "ListenerTest.*"),
    Mutant("a socket that could not get its name and stays", "daemon/transport/listener.cc",
           "if (is_staged) env.RemoveFile(staged)", "if (false) env.RemoveFile(staged)", "server_test",
           "ListenerTest.*"),
    Mutant("an engine whose looks are all late and that is asked on", "daemon/remote/circuit_breaker.cc",
           "++late_queries_ < kFailuresToOpen", "++late_queries_ > 0", "remote_test", "CircuitBreakerTest.*"),
    Mutant("pauses for late looks that do not grow", "daemon/remote/circuit_breaker.cc",
           "  if (late_queries_ > kFailuresToOpen) pause_ = std::min(2 * pause_, kLongestPause);\n", "", "remote_test",
           "CircuitBreakerTest.*"),
    Mutant("queries that the breaker hears nothing of", "daemon/remote/shared_results.cc",
           "  upstream_.NoteQuery(result.status(), result.ok() && result->has_value());\n", "", "remote_engine_test",
           "UpstreamFaultTest.AnEngineWithWhich*"),
    Mutant("an action that waits for a worker for ever", "daemon/remote/execution.cc",
           "late = late || (rang && waits && !has_run);", "late = late && rang && waits && !has_run;",
           "remote_engine_test", "RemoteExecutorTest.AnActionThatNoWorker*:RemoteExecutorTest.TheQueueLimit*"),
    Mutant("an action that runs and is given up for its wait", "daemon/remote/execution.cc",
           "(rang && waits && !has_run)", "rang", "remote_engine_test", "RemoteExecutorTest.AnActionThatRuns*"),
    Mutant("steps that wait behind one that no worker took", "daemon/remote/worker_pause.cc",
           "  why_ = std::move(why);\n", "  static_cast<void>(why);\n", "remote_test", "PlacingExecutorTest.*"),
    Mutant("a result of an earlier run taken for a worker", "daemon/remote/placing_executor.cc",
           "if (end.ok() && !end->ran_earlier)", "if (end.ok())", "remote_test", "PlacingExecutorTest.*"),
    Mutant("a pause in which what waits is sent all the same", "daemon/remote/remote_executor.cc",
           "    KERNIX_RETURN_IF_ERROR(CheckPause(action));\n", "    static_cast<void>(&Runner::CheckPause);\n",
           "remote_engine_test", "RemoteExecutorTest.InAPause*"),
    Mutant("what an engine has lost is not sent again", "daemon/remote/remote_executor.cc",
           "constexpr int kMostSends = 3;", "constexpr int kMostSends = 1;", "remote_engine_test",
           "RemoteExecutorTest.WhatTheEngineHasLost*"),
    Mutant("an engine that finds out late what it lacks is asked again", "daemon/remote/remote_executor.cc",
           "      if (env_.Now() - begin > upstream_.timeout()) return execution;\n",
           "      static_cast<void>(begin);\n", "remote_engine_test",
           "RemoteExecutorTest.AnEngineThatFindsOutLate*"),
    Mutant("what an engine has kept of anybody's runs", "daemon/remote/remote_executor.cc",
           "    KERNIX_RETURN_IF_ERROR(CheckRan(action, execution));\n", "    static_cast<void>(&Runner::CheckRan);\n",
           "remote_engine_test", "RemoteExecutorTest.AnEngineThatDoesNotRunAnew*"),
    Mutant("a lack of workers taken for an engine's failure", "daemon/remote/upstream.cc",
           " || IsNoWorker(status)", "", "remote_engine_test", "RemoteExecutorTest.APrecondition*"),
    Mutant("another token that has no version of its own", "daemon/remote/token_file.cc",
           "    ++version_;\n", "", "remote_test", "TokenFileTest.*"),
]  # fmt: skip


def verdict(mutant: Mutant, build: pathlib.Path) -> str:
    """Build and run what must notice the change, which is made already."""
    built = subprocess.run(["cmake", "--build", build, "--target", mutant.program], capture_output=True, text=True)
    if built.returncode != 0:
        return f"DOES NOT BUILD\n{built.stdout[-2000:]}"
    program = next(path for path in build.rglob(mutant.program) if path.is_file() and os.access(path, os.X_OK))
    try:
        run = subprocess.run(
            [program, f"--gtest_filter={mutant.tests}"], capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return "HUNG"
    if run.returncode == 0:
        return "NOT NOTICED"
    return "noticed" if "[  FAILED  ]" in run.stdout or "Failure" in run.stdout else "CRASHED"


def stale() -> list[str]:
    """Return the mutants whose text is not once in their file."""
    return [mutant.what for mutant in MUTANTS if (ROOT / mutant.file).read_text().count(mutant.old) != 1]


def main(build: pathlib.Path, wanted: str) -> int:
    """Try the mutants; how many were not noticed as they should."""
    bad = 0
    for mutant in MUTANTS:
        if wanted not in mutant.what:
            continue
        path = ROOT / mutant.file
        text = path.read_text()
        try:
            path.write_text(text.replace(mutant.old, mutant.new))
            result = verdict(mutant, build)
        finally:
            path.write_text(text)
        print(f"{mutant.what}: {result}", flush=True)
        bad += result != "noticed"
    return bad


if __name__ == "__main__":
    if not_there := stale():
        sys.exit(f"mutate: the sources do not hold the text of: {', '.join(not_there)}")
    if len(sys.argv) > 1:
        sys.exit(main(pathlib.Path(sys.argv[1]).resolve(), sys.argv[2] if len(sys.argv) > 2 else ""))
