// SPDX-License-Identifier: Apache-2.0
//
// What kernixd and kernix-spawn, the program that runs tools, say to each other.
//
// kernixd keeps one connection (SOCK_SEQPACKET). Each message on it is a job: the enclosure, and two descriptors, the
// job's own connection (SOCK_STREAM) and the file that takes the tool's output. The Command follows on the job's
// connection, and at the end the tool's JobEnd comes back. The job's connection is the job: when kernixd shuts it down
// or dies, all of the job's processes are killed.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/os/unique_fd.h"

namespace kernix::spawn {

// How much a tool is kept from, from least to most.
enum class Rung : uint8_t {
  kNone,      // all that kernix-spawn's user may read and write
  kLandlock,  // opens and changes no other files; no network
  kWall,      // sees no other files, processes or network
};

// What one toolchain's jobs have in common. Jobs with equal enclosures share a zygote.
struct Enclosure {
  Rung rung = Rung::kNone;
  // Files and folders of the toolchain, absolute; missing ones do not matter. "/": all that kernix-spawn's user may
  // read.
  std::vector<std::string> readable;
  std::string scratch;  // the folder of Command::folders; absolute, without links

  bool operator==(const Enclosure&) const = default;
};

// A tool to run.
struct Command {
  std::vector<std::string> argv;         // argv[0] is the path of the program
  std::vector<std::string> environment;  // complete: "NAME=value"
  std::string working_directory;         // empty: "/"
  std::vector<std::string> folders;      // in the enclosure's scratch folder: those that the tool may read
  std::string writable;         // the one that it may also write; empty: it gets one for temporary files, TMPDIR
  uint64_t max_file_bytes = 0;  // the limits: see ProcessSpec
  uint64_t max_folder_bytes = 0;
  uint64_t max_address_space_bytes = 0;  // of each process; with a cgroup, also the memory of all of them together
  uint64_t max_cpu_seconds = 0;
  int32_t max_processes = 0;
  int32_t niceness = 0;
};

// How a job ended.
struct JobEnd {
  enum class Kind : uint8_t {
    kEnded,          // the tool ran; `status` is as from wait(2)
    kTooMany,        // the same, and it was killed because of its number of processes
    kTooLarge,       // the same, because of the bytes of its files
    kNotEntered,     // the working directory cannot be entered: `error_number`
    kNotStarted,     // the program cannot be executed: `error_number`
    kNotBuilt,       // the enclosure cannot be made: `problem`
    kTooMuchMemory,  // as kTooMany, because of the memory of all its processes together
  };
  Kind kind = Kind::kEnded;
  int32_t status = 0;
  int32_t error_number = 0;
  uint64_t max_rss_bytes = 0;
  uint64_t processor_us = 0;
  std::string problem = {};
};

std::string Encode(const Enclosure& enclosure);
std::string Encode(const Command& command);
std::string Encode(const JobEnd& end);

// False if `text` is not what Encode() makes.
bool Decode(std::string_view text, Enclosure& enclosure);
bool Decode(std::string_view text, Command& command);
bool Decode(std::string_view text, JobEnd& end);

// Messages on a job's connection have their size in front. Both block. False if the other side has gone.
bool SendMessage(int socket, std::string_view message);
bool ReceiveMessage(int socket, std::string& message);

// A job, as it comes on a connection of SOCK_SEQPACKET.
struct Handed {
  std::string message;
  UniqueFd connection;
  UniqueFd output;
};

// Both block. `message` must not be empty. False, with errno, if the other side has gone.
bool HandOver(int socket, std::string_view message, int connection, int output);
std::optional<Handed> ReceiveJob(int socket);

}  // namespace kernix::spawn
