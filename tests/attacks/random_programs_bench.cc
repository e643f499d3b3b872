// gpu_random_programs_bench [seed=N] [programs=N] [tenants=N] [seconds=N]: programs drawn at random
// against the books and the device: by turns one on a device of its own, and a round of many of two
// to four tenants, or of `tenants`. Ends with status 1 and the seed of the first that failed; the
// same words with this seed and programs=1 run it again, as far as the order in which processes run
// is the same.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>

#include "tests/attacks/random_programs.h"

namespace {

struct Words {
  std::uint64_t seed = std::random_device()();
  std::uint64_t programs = 1000;
  std::uint64_t tenants = 0;
  std::uint64_t seconds = ~0ULL;
};

bool parse(int argc, char** argv, Words& words) {
  struct Word {
    const char* name;
    std::uint64_t* value;
  };
  const Word known[] = {{"seed=", &words.seed},
                        {"programs=", &words.programs},
                        {"tenants=", &words.tenants},
                        {"seconds=", &words.seconds}};
  for (int i = 1; i < argc; ++i) {
    bool is_known = false;
    for (const auto& [name, value] : known) {
      if (std::strncmp(argv[i], name, std::strlen(name)) != 0) continue;
      *value = std::strtoull(argv[i] + std::strlen(name), nullptr, 10);
      is_known = true;
    }
    if (is_known) continue;
    std::fprintf(stderr, "%s: no such word; seed=N, programs=N, tenants=N and seconds=N are\n",
                 argv[i]);
    return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  using namespace regatta::attacks;
  Words words;
  if (!parse(argc, argv, words)) return 2;
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  std::printf("seed=%llu\n", static_cast<unsigned long long>(words.seed));
  std::fflush(stdout);
  RandomTotals totals;
  std::string failure;
  double said_at = 0;
  std::uint64_t seed = words.seed;
  for (; failure.empty() && totals.programs < words.programs &&
         passed() < static_cast<double>(words.seconds);
       ++seed) {
    const bool is_alone = words.tenants == 0 && seed % 3 == 0;
    failure = is_alone ? run_random_program(seed, totals)
                       : run_random_round(seed, static_cast<int>(words.tenants), totals);
    if (!failure.empty())
      std::printf("seed=%llu: %s\n", static_cast<unsigned long long>(seed), failure.c_str());
    if (passed() < said_at + 10) continue;
    said_at = passed();
    std::fprintf(stderr, "%.0f s, at seed %llu: %s\n", said_at,
                 static_cast<unsigned long long>(seed), to_string(totals).c_str());
  }
  std::printf("%llu seeds in %.0f s: %s\n", static_cast<unsigned long long>(seed - words.seed),
              passed(), to_string(totals).c_str());
  return failure.empty() ? 0 : 1;
}
