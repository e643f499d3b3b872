// tests/attacks/random_options.h: what a random program is told, as words of its command line, and
// what it says of itself while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace regatta::attacks {

struct ProgramOptions {
  static constexpr std::uint64_t kNone = 1'000'000;  // no such descriptor

  std::uint64_t seed = 1;
  std::uint64_t calls = 100;
  std::uint64_t quota_mib = 100;
  std::uint64_t depth = 1;          // how deep it may start others like itself
  std::uint64_t is_small = 0;       // its device has less than the quota
  std::uint64_t has_hidden = 1;     // it loads modules that only the driver can read
  std::uint64_t is_swappable = 0;   // its tenant has over-commit
  std::uint64_t is_checked = 1;     // it compares what the device has for it with the quota
  std::uint64_t filled_mib = 0;     // it does nothing but take so much, which it must get
  std::uint64_t sender = kNone;     // descriptors of a pair of sockets: memory that it shows to
  std::uint64_t receiver = kNone;   // others, and that others show
  std::uint64_t records = kNone;    // descriptor of the ProgramRecords
  std::uint64_t record_number = 0;  // which of them is its own
};

struct ProgramWord {
  const char* name;
  std::uint64_t ProgramOptions::*value;
};
inline constexpr ProgramWord kProgramWords[] = {{"seed", &ProgramOptions::seed},
                                                {"calls", &ProgramOptions::calls},
                                                {"quota_mib", &ProgramOptions::quota_mib},
                                                {"depth", &ProgramOptions::depth},
                                                {"small", &ProgramOptions::is_small},
                                                {"hidden", &ProgramOptions::has_hidden},
                                                {"swappable", &ProgramOptions::is_swappable},
                                                {"checked", &ProgramOptions::is_checked},
                                                {"filled_mib", &ProgramOptions::filled_mib},
                                                {"sender", &ProgramOptions::sender},
                                                {"receiver", &ProgramOptions::receiver},
                                                {"records", &ProgramOptions::records},
                                                {"record_number", &ProgramOptions::record_number}};

inline std::vector<std::string> words_of(const ProgramOptions& options) {
  std::vector<std::string> words;
  for (const auto& [name, value] : kProgramWords)
    words.push_back(name + std::string("=") + std::to_string(options.*value));
  return words;
}

inline ProgramOptions parse_options(int argc, char** argv) {
  ProgramOptions options;
  for (int i = 1; i < argc; ++i)
    for (const auto& [name, value] : kProgramWords) {
      const std::size_t length = std::strlen(name);
      if (std::strncmp(argv[i], name, length) == 0 && argv[i][length] == '=')
        options.*value = std::strtoull(argv[i] + length + 1, nullptr, 10);
    }
  return options;
}

// In shared memory: a program, and those that it starts, write; who runs them reads.
struct ProgramRecord {
  static constexpr std::size_t kLast = 10;

  std::atomic<std::uint64_t> calls = 0;
  std::atomic<std::uint64_t> allocations = 0;
  std::atomic<std::uint64_t> refusals = 0;
  std::atomic<std::uint64_t> kills = 0;         // of programs that it had started
  std::atomic<std::uint64_t> opened = 0;        // bytes of others that it has open now
  std::atomic<std::uint64_t> opened_total = 0;  // that it and those it started ever opened
  std::atomic<std::uint64_t> checks = 0;        // of what it had written
  char last[kLast][32] = {};                    // the names of its last calls, in a ring

  void add_call(const char* name) { std::strncpy(last[calls++ % kLast], name, sizeof last[0] - 1); }
};
struct ProgramRecords {
  static constexpr std::size_t kMost = 64;
  ProgramRecord all[kMost];
};

}  // namespace regatta::attacks
