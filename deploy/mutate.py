#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Breaks one promise after another by a change of one function, and runs the tests that must then fail.

    make mutate             # all of them; MUTANTS=word: those whose description holds it
    deploy/mutate.py        # only says which of them do not fit the sources any more

Run it by hand: each change builds a part of kernix again, and may leave something unused, so that the build must not
take warnings for errors. It edits the working copy's files and puts them back.

A mutant names a function, or a constant, and what becomes of it:

    returns("false")             its body is `return false;`
    without("NotifyAll")         the statement with that is left out, with the `if (...)` or `for (...)` before it
    never("pins_")               the condition with that, or its operand of `&&` or `||`, is false
    always("pins_")              the same is true
    instead("FULL", "NORMAL")    the second stands in the place of the first
    swapped("Fill", "Rename")    the two calls stand in each other's place

What a change looks for must be there once. It is an identifier, or a few tokens where no identifier is alone.
"""

import os
import pathlib
import subprocess
import sys
from typing import NamedTuple

from cpp_change import Change, MisfitError, always, changed, instead, never, returns, swapped, without

ROOT = pathlib.Path(__file__).resolve().parent.parent
SECONDS = 400  # a test program that takes longer has not noticed either


class Mutant(NamedTuple):
    """One change, and who must notice it."""

    what: str
    file: str
    function: str  # or a constant; with its class if another class has such a function
    change: Change
    program: str  # a C++ test program
    tests: str  # a filter of GoogleTest

    def text(self) -> str:
        """Return the file after the change."""
        return changed((ROOT / self.file).read_text(), self.function, self.change)


MUTANTS = [
    Mutant("the toolchain's identity without the libraries of its programs", "daemon/toolchain/host_compiler.cc",
           "PartsOf", without("insert"), "toolchain_test", "ToolchainTest.TheLibraries*"),
    Mutant("the key without its last step", "daemon/plan/load_key.cc", "LoadKey", without('"step"'),
           "plan_test", "*LoadKeyTest*"),
    Mutant("a flight that does not linger", "daemon/builder/flight.cc", "Flight::StaysEmpty", never("kBuilding"),
           "build_test", "FlightTest.*"),
    Mutant("paths that leave our own headers", "daemon/builder/dependency_file.cc", "IsLink", never("kKernelHeaders"),
           "build_test", "DependencyFileTest.*"),
    Mutant("lookups of a user without bound", "daemon/rpc/load_gate.cc", "UserLimit::Enter",
           never("user.count >= most_"), "server_test", "LookupServerTest.AUser*"),
    Mutant("lookups without patience's end", "daemon/rpc/lookup_server.cc", "CloseLate", never("patience"),
           "server_test", "LookupServerTest.OneThat*"),
    Mutant("a frozen process that asks for other bytes", "common/wire/quick_lookup.cc", "LookupOf",
           without("clear_frozen"), "common_test", "LookupTest.ItsBytes*"),
    Mutant("a full cache that takes from anybody", "daemon/cache/index.cc", "FindVictim", without("sort"),
           "cache_test", "*AFullCacheTakesFromWhoHoldsMost"),
    Mutant("turns that do not count time", "daemon/exec/fair_queue.h", "Finish", without("served"),
           "exec_test", "FairQueueTest.LongItems*"),
    Mutant("files of a job without bound", "daemon/spawn/job.cc", "Count", never("bytes > most_bytes_"),
           "spawn_test", "*FilesThatAreTooLarge*"),
    Mutant("outputs that do not wait for other loads", "daemon/builder/held_outputs.cc", "HeldOutputs::Hold",
           always("files_->held() + held->size > limit"), "build_test", "HeldOutputsTest.Wait*"),
    Mutant("targets committed without the second check", "client/runtime/targets.cc", "Commit", without("CheckAll"),
           "client_local_test", "BindTargetsTest.*"),
    Mutant("files that are not synced", "common/os/posix_files.cc", "SyncFile", returns("absl::OkStatus()"),
           "cache_crash_test", "DurabilityTest.*"),
    Mutant("an index that is not synced", "daemon/cache/index_schema.cc", "kAwaitDisk", instead("FULL", "NORMAL"),
           "cache_crash_test", "DurabilityTest.*"),
    Mutant("guards ignored", "daemon/cache/cache.cc", "Cache::RemoveBlob", never("guards_"), "cache_test",
           "CacheTest.AnArtifactStaysWhile*"),
    Mutant("pins without bound", "daemon/cache/index.cc", "CheckPins", returns("absl::OkStatus()"), "cache_test",
           "CachePinTest.AUserPins*"),
    Mutant("a check of the store that believes earlier ones", "daemon/cache/cache_verify.cc",
           "Cache::VerifyArtifact", without("Forget"), "cache_test", "CacheVerifyTest.WhatIsKnown*"),
    Mutant("an executor that wakes nobody", "daemon/exec/local_executor.cc", "AdmitNext", without("changed"),
           "exec_test", "*LocalExecutorTest*"),
    Mutant("a load memo that forgets where headers were looked for", "client/load/load_memo.cc", "LoadInputs::Add",
           without("searched_"), "client_local_test", "LoadInputsTest.*:LoadTest.AfterAHeader*"),
    Mutant("a load memo without the folders of failed look-ups", "client/headers/header_scan.cc", "Try",
           without("searched_"), "client_local_test", "LoadTest.AfterAHeader*"),
    Mutant("nvcc's link flags read as g++'s", "common/flags/flag_table.cc", "HostWordsAtLink", returns("nvcc_words"),
           "client_local_test", "FlagFilesTest.*"),
    Mutant("flags of a user's own kernixd for everyone", "daemon/toolchain/flags/flags.cc", "CheckUser",
           always("shared"), "toolchain_test", "FlagsTest.*"),
    Mutant("an address in the action cache with another salt", "daemon/remote/shared_results.cc", "MakeAddress",
           instead("Raw", "Hex"), "remote_engine_test", "DocumentedResult*"),
    Mutant("an engine's bytes taken unseen", "daemon/remote/blob_transfer.cc", "ReadStream", without("BlobDigestOf"),
           "remote_engine_test", "UpstreamFaultTest.OtherBytes*"),
    Mutant("an engine's token read once", "daemon/remote/connection.cc", "TokenFile::Value", always("now == seen_"),
           "remote_test", "TokenFileTest.*"),
    Mutant("a breaker that never opens", "daemon/remote/circuit_breaker.cc", "Failed", always("kFailuresToOpen"),
           "remote_test", "CircuitBreakerTest.*"),
    Mutant("an engine's stream that is not picked up", "daemon/remote/execution.cc", "FollowOnce", always("name_"),
           "remote_engine_test", "RemoteExecutorTest.AStream*"),
    Mutant("an engine that is not told that nobody waits", "daemon/remote/execution.cc", "Execute",
           without("Abandon"), "remote_engine_test", "RemoteExecutorTest.ACancelled*"),
    Mutant("the words of a command left out of its digest", "daemon/exec/action_digest.cc", "CommandOf",
           without("argv"), "exec_test", "ActionDigestTest.*"),
    Mutant("a node without compilers that links with libraries of its own", "daemon/builder/linker.cc",
           "SmallLibrariesFor", never("described"), "remote_build_test", "*AHostWithoutCompilersBuildsWhat*"),
    Mutant("a worker's headers taken for this node's", "daemon/builder/toolchain_headers.cc",
           "DigestToolchainHeaders", never("described"), "remote_build_test", "*AHostWithoutCompilersBuildsWhat*"),
    Mutant("a burst that workers get as a whole", "daemon/remote/placing_executor.cc", "FlowsOver",
           always("there_wait_"), "remote_test", "PlacingExecutorTest.ABurst*"),
    Mutant("everybody an administrator", "daemon/transport/local_user.cc", "IsAdministrator", always("geteuid"),
           "server_test", "*LocalUserTest*"),
    Mutant("folders on the way that others may write to", "common/os/private_directory.cc", "kWritableByAll",
           instead("0002", "0"), "common_test", "GuardedPath*"),
    Mutant("an artifact that others may write to is opened", "client/connection/daemon_client.cc",
           "kWritableByOthers", instead("0022", "0"), "client_local_test", "CheckArtifactTest.*"),
    Mutant("damaged artifacts served", "daemon/cache/store_folder.cc", "BlobFolder::Verify", never("content"),
           "cache_test", "*DamagedArtifact*"),
    Mutant("uploads taken for what they claim to be", "daemon/rpc/blob_receiver.cc", "FinishCurrent",
           never("DigestOf"), "server_test", "BlobReceiver.*"),
    Mutant("results of a tool that was replaced are kept", "daemon/builder/step_cache.cc", "StepCache::Keep",
           without("Unchanged"), "build_test", "StepCacheTest.*"),
    Mutant("a known load that forgets its toolchain", "daemon/builder/known_loads.cc", "KnownLoads::Find",
           always("toolchain"), "build_test", "KnownLoads.*"),
    Mutant("the key without the number of a header's root", "daemon/plan/include_roots.cc", "TopOfIncludeRoot",
           instead("index", "0"), "plan_test", "*LoadKeyTest*"),
    Mutant("the key without our kernel headers", "daemon/plan/plan.cc", "MountPoints", without("kKernelHeaders"),
           "plan_test", "*LoadKeyTest*"),
    Mutant("files that are renamed before they are written", "common/os/posix_files.cc", "WriteFileDurably",
           swapped("FillAndSync", "Rename"), "cache_crash_test", "DurabilityTest.*"),
    Mutant("folders that are not synced", "common/os/posix_files.cc", "SyncDirectory", returns("absl::OkStatus()"),
           "cache_crash_test", "DurabilityTest.*"),
    Mutant("a download of any content", "client/connection/daemon_client.cc", "DownloadArtifact", always("DigestOf"),
           "client_integration_test", "ClientRestartTest.*"),
    Mutant("uses lost when a flush fails", "daemon/cache/journal.cc", "PutBack", without("hits"), "cache_test",
           "CacheTest.AFlushThatFails*"),
    Mutant("a daemon that lends nothing", "daemon/app/daemon.cc", "kLendTime", instead("30'000", "0"),
           "kernixd_test", "KernixdMembersTest.WhatAMember*"),
    Mutant("a lock on a file that was removed", "common/os/posix_files.cc", "TryLockFile", always("StillNamed"),
           "common_test", "PosixLocksTest.*"),
    Mutant("the memo's key without the working folder", "client/load/load_memo.cc", "MemoKey",
           without("AbsolutePath"), "client_local_test", "MemoKeyTest.*"),
    Mutant("a known load of flags that name files", "daemon/builder/known_loads.cc", "DependsOnFiles",
           never("flag_files"), "builder_test", "*AFileOfAFlagThatHasChanged*"),
    Mutant("a compiled preamble that loses the state of a pragma", "daemon/plan/split_compile.cc",
           "LeavesNothingOpen", always("OpenPragmas()"), "plan_test", "SplitCompileTest.*"),
    Mutant("a compiled preamble that brings back macros", "daemon/plan/split_compile.cc", "MayBeCompiled",
           always("UndefinesPredefined"), "plan_test", "SplitCompileTest.*"),
    Mutant("templates that add device code unseen", "daemon/language/read/device_code.cc", "AddPart",
           never("has_templates"), "language_test", "DeviceCodeTest.*"),
    Mutant("host functions that name other things of the device", "daemon/language/read/device_code.cc", "AddList",
           without("Field"), "language_test", "DeviceCodeTest.*"),
    Mutant("host functions that are declared for devices", "daemon/language/read/device_code.cc", "BeginsClass",
           returns("true"), "language_test", "DeviceCodeTest.*"),
    Mutant("unused variables that only cicc warns of", "daemon/language/read/device_code.cc", "Reader::Finish",
           without("unused"), "language_test", "DeviceCodeTest.*"),
    Mutant("debug information with another text's lines", "daemon/plan/nvcc_phases.cc", "HoldsLines", never('"-g"'),
           "plan_test", "NvccPhasesTest.*"),
    Mutant("warnings with another text's lines", "daemon/builder/nvcc_compiler.cc", "RunSteps",
           never("MayHoldOtherLines"), "build_test", "StepRunnerTest.*"),
    Mutant("files watched without a second look", "common/os/file_identity.cc", "FileChecker::Watch",
           always("Unchanged"), "common_test", "FileCheckerTest.*"),
    Mutant("watches that miss what is put in a file's place", "common/os/posix_watch.cc", "kFileEvents",
           instead("IN_ATTRIB", "0"), "common_test", "*PosixWatch*"),
    Mutant("watches that miss folders on the way", "common/os/posix_watch.cc", "kFolderEvents",
           instead("IN_MOVE_SELF", "0"), "common_test", "*PosixWatch*"),
    Mutant("queries of a load that have a time limit each", "daemon/builder/upstream_cache.h", "UpstreamBudget::End",
           never("queries_"), "build_test", "UpstreamBudgetTest.*"),
    Mutant("queries at the same time that are counted twice", "daemon/builder/upstream_cache.h",
           "UpstreamBudget::Begin", always("queries_"), "build_test", "UpstreamBudgetTest.*"),
    Mutant("a step's query that has a time limit of its own", "daemon/builder/command_runner.cc", "FindOrRun",
           instead("run.budget", "nullptr"), "sharing_test", "*ALoadThatHasWaited*"),
    Mutant("a phase's query that has a time limit of its own", "daemon/builder/command_runner.cc", "FindOrRun",
           instead("run.budget", "nullptr"), "sharing_test", "*NvccsPhases*"),
    Mutant("a wait for another node's build that takes the time for queries", "daemon/builder/upstream_cache.cc",
           "Await", without("Renew"), "sharing_test", "*AWaitForAnotherNodes*"),
    Mutant("a write that a renewed token does not try again", "daemon/builder/upstream_cache.cc", "TryToWrite",
           never("IsUnauthenticated"), "sharing_test", "*ExpiredToken*"),
    Mutant("a load with compilers that waits for workers", "daemon/builder/flight.cc", "JoinOrMake",
           never("needs_workers"), "builder_test", "SharedBuildTest.*"),
    Mutant("what is known of a runtime header taken for another's", "daemon/builder/stand_ins.cc",
           "StandIns::Read", without("path"), "build_test", "StandInsTest.*"),
    Mutant("a lesson about one pass taken for one about another", "daemon/builder/stand_ins.cc",
           "StandIns::Read", without('"pass"'), "build_test", "StandInsTest.*"),
    Mutant("a step of other device code that is taken", "daemon/builder/step_cache.cc", "StepCache::KeyOf",
           without('"device code"'), "build_test", "StepCacheTest.*"),
    Mutant("positions that are told whenever they change", "daemon/exec/local_executor.cc", "TellPositions",
           without("between_tellings_"), "exec_test", "*DoesNotTellAll*"),
    Mutant("positions whose last change is not told", "daemon/exec/local_executor.cc", "TellPositions",
           instead("between_tellings_", "std::chrono::hours(9)"), "exec_test", "LocalExecutorTest.*"),
    Mutant("nvcc's own programs that are staged the sources", "daemon/plan/nvcc_phases.cc", "AddDeviceProgram",
           without("KeepWhatIsRead"), "plan_test", "NvccPhasesTest.*"),
    Mutant("nvcc's own programs without their toolkit", "daemon/plan/nvcc_phases.cc", "KeepWhatIsRead",
           never("npos"), "plan_test", "NvccPhasesTest.*"),
    Mutant("a compiled preamble that takes the pragmas of the code", "daemon/plan/split_compile.cc",
           "BeforeOpenedPragmas", returns("line"), "plan_test", "SplitCompileTest.*"),
    Mutant("code whose own #line nobody finds", "daemon/language/read/leading_includes.cc", "TakeLine",
           never("ComesNext"), "language_test", "LeadingIncludesTest.*"),
    Mutant("a #line in the code taken for its first", "daemon/language/read/leading_includes.cc", "TakeLine",
           always("ComesNext"), "language_test", "LeadingIncludesTest.*"),
    Mutant("host bodies that a cicc with errors for warnings does not see", "daemon/plan/nvcc_phases.cc",
           "FindDeviceUnit", never("MindsUnused"), "plan_test", "NvccPhasesTest.*"),
    Mutant("host bodies that a shared kernixd does not see", "daemon/plan/nvcc_phases.cc", "FindDeviceUnit",
           never("host_bodies_count"), "plan_test", "NvccPhasesTest.*"),
    Mutant("kernels of a distribution's nvcc whose programs are not found", "daemon/plan/nvcc_phases.cc",
           "PhaseMaker::PhaseMaker", always("kBesideNvcc"), "plan_test", "NvccPhasesTest.*"),
    Mutant("device code that is marked by [[...]]", "daemon/language/read/device_code.cc", "SpecifiersOf",
           always("has_brackets"), "language_test", "DeviceCodeTest.*"),
    Mutant("kernels with auto parameters", "daemon/language/read/device_code.cc", "AddPart", never('"auto"'),
           "language_test", "DeviceCodeTest.*"),
    Mutant("literals that look like several tokens", "daemon/language/read/device_code.cc", "TokenDigest::Add",
           without("0x7f"), "language_test", "DeviceCodeTest.*"),
    Mutant("code that asks for its line", "daemon/language/read/device_code.cc", "Read", without("AsksForItsLine"),
           "language_test", "DeviceCodeTest.*"),
    Mutant("a host function whose virtual functions devices have", "daemon/language/read/device_code.cc",
           "DeviceNames::Add", without("virtual"), "language_test", "DeviceCodeTest.*"),
    Mutant("a socket's file before anybody listens", "daemon/transport/listener.cc", "StagedPathOf",
           returns("path"), "server_test", "ListenerTest.*"),
    Mutant("a socket that could not get its name and stays", "daemon/transport/listener.cc", "Listener::Bind",
           without("RemoveFile"), "server_test", "ListenerTest.*"),
    Mutant("an engine whose queries are all late and that is asked on", "daemon/remote/circuit_breaker.cc",
           "QueryWasLate", always("BROKEN"), "remote_test", "CircuitBreakerTest.*"),
    Mutant("pauses for late queries that do not grow", "daemon/remote/circuit_breaker.cc", "QueryWasLate",
           without("pause_"), "remote_test", "CircuitBreakerTest.*"),
    Mutant("queries that the breaker hears nothing of", "daemon/remote/shared_results.cc", "SharedResults::Find",
           without("NoteQuery"), "remote_engine_test", "UpstreamFaultTest.AnEngineWithWhich*"),
    Mutant("an action that waits for a worker for ever", "daemon/remote/execution.cc", "HasWorked", never("TIMEOUT"),
           "remote_engine_test", "RemoteExecutorTest.AnActionThatNoWorker*:RemoteExecutorTest.TheQueueLimit*"),
    Mutant("an action that runs and is given up for its wait", "daemon/remote/execution.cc", "TellStage",
           always("QUEUED"), "remote_engine_test", "RemoteExecutorTest.AnActionThatRuns*"),
    Mutant("steps that wait behind one that no worker took", "daemon/remote/circuit_breaker.cc", "NotTaken",
           without("why_"), "remote_test", "PlacingExecutorTest.*"),
    Mutant("a result of an earlier run taken for a worker", "daemon/remote/placing_executor.cc", "SendThere",
           always("ran_earlier"), "remote_test", "PlacingExecutorTest.*"),
    Mutant("a pause in which what waits is sent all the same", "daemon/remote/remote_executor.cc", "Run",
           without("CheckPause"), "remote_engine_test", "RemoteExecutorTest.InAPause*"),
    Mutant("what an engine has lost is not sent again", "daemon/remote/remote_executor.cc", "kMostSends",
           instead("3", "1"), "remote_engine_test", "RemoteExecutorTest.WhatTheEngineHasLost*"),
    Mutant("an engine that finds out late what it lacks is asked again", "daemon/remote/remote_executor.cc",
           "SendAndExecute", without("timeout"), "remote_engine_test",
           "RemoteExecutorTest.AnEngineThatFindsOutLate*"),
    Mutant("what an engine has kept of anybody's runs", "daemon/remote/remote_executor.cc", "Run",
           without("CheckRan"), "remote_engine_test", "RemoteExecutorTest.AnEngineThatDoesNotRunAnew*"),
    Mutant("a lack of workers taken for an engine's failure", "daemon/remote/upstream.cc", "IsAnswer",
           never("IsNoWorker"), "remote_engine_test", "RemoteExecutorTest.APrecondition*"),
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


def misfits() -> list[str]:
    """Return what does not fit the sources."""
    found = []
    for mutant in MUTANTS:
        try:
            mutant.text()
        except (MisfitError, FileNotFoundError) as error:
            found.append(f"{mutant.what}: {mutant.file}: {error}")
    return found


def main(build: pathlib.Path, wanted: str) -> int:
    """Try the mutants; how many were not noticed as they should."""
    bad = 0
    for mutant in MUTANTS:
        if wanted not in mutant.what:
            continue
        path = ROOT / mutant.file
        text = path.read_text()
        try:
            path.write_text(mutant.text())
            result = verdict(mutant, build)
        finally:
            path.write_text(text)
        print(f"{mutant.what}: {result}", flush=True)
        bad += result != "noticed"
    return bad


if __name__ == "__main__":
    if bad := misfits():
        sys.exit("mutate: these do not fit the sources:\n" + "\n".join(bad))
    if len(sys.argv) > 1:
        build_folder = pathlib.Path(sys.argv[1]).resolve()
        if not (build_folder / "CMakeCache.txt").exists():
            sys.exit(f"mutate: {build_folder} is no build folder")
        sys.exit(main(build_folder, sys.argv[2] if len(sys.argv) > 2 else ""))
