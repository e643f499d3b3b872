// tests/attacks/random_program.h: a program that is drawn at random by a seed: what its steps
// share. A step is one way to take, use or return memory (random_steps.h).
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/attacks/attack.h"
#include "tests/attacks/random_options.h"

namespace regatta::attacks {

inline constexpr std::uint64_t kMiB = 1 << 20;
inline constexpr CUmemLocation kHere = {CU_MEM_LOCATION_TYPE_DEVICE, 0};

// Ends the program with status 4 and a line that names `what`.
void expect(bool is_right, const char* what);

// Addresses that a program may write to.
struct WrittenRange {
  CUdeviceptr address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t value = 0;  // that it wrote, see write(); 0: nothing
  bool is_block = false;    // cuMemAlloc gave it, and nothing else lies in its blocks
};

class RandomProgram {
 public:
  explicit RandomProgram(const ProgramOptions& options);

  // Makes the calls, and returns all that it holds.
  void run();
  // Takes what `filled_mib` says, in one piece.
  void fill();

  // For steps.
  const ProgramOptions& options() const { return options_; }
  ProgramRecord& record() const { return *record_; }
  CUcontext context() const { return context_; }
  CUstream stream() const { return stream_; }
  std::uint64_t draw() { return random_(); }
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  // Many small ones, some that fill blocks, a few that no quota has room for.
  std::uint64_t size();

  using Give = std::function<CUresult()>;
  // Memory that was given is held, to be returned by `give`; a refusal is counted. With a `range`,
  // it is written to now and then.
  bool hold(CUresult result, Give give, const WrittenRange& range = {});
  void give_one();
  // Writes words that only this program knows; checks some of them.
  std::uint32_t write(const WrittenRange& range);
  static void check(const WrittenRange& range, std::uint64_t at);
  void check_one();
  // One of the ranges that are held and that fit; null where there is none.
  const WrittenRange* any_range(const std::function<bool(const WrittenRange&)>& fits);
  // Bytes of other processes that are open, or no longer are.
  void note_opened(std::uint64_t bytes);
  void note_closed(std::uint64_t bytes);

 private:
  struct Held {
    Give give;
    WrittenRange range;
  };
  void step(const char* after);
  void compare_with_quota(const char* after) const;

  const ProgramOptions options_;
  std::mt19937_64 random_;
  ProgramRecord* record_;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  std::vector<Held> held_;
};

}  // namespace regatta::attacks
