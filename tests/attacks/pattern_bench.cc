// How well equal parts of a device's time are kept by tenants that launch by patterns
// (launch_patterns.h), drawn at random in pairs and in eights, as the device's own log says. Each
// pattern is in one pair with steady kernels, too. Words: seed=N, seconds=N, pairs=N, eights=N,
// steady=0 leaves the pairs with steady kernels out, only=PATTERN. Set the machine aside. Exit
// status 1 when a pattern missed its part by more than 2 points in any second.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "regatta/base/core/stats.h"
#include "tests/attacks/attack_path.h"
#include "tests/gpu_time/time_shared_machine.h"

namespace regatta::gpu_time {
namespace {

struct Pattern {
  std::string name;
  bool pauses = false;
};

std::vector<Pattern> all_patterns() {
  std::vector<Pattern> all;
  FILE* const names = ::popen(attack("launch_pattern").c_str(), "r");
  char name[80];
  int pauses = 0;
  while (names != nullptr && std::fscanf(names, "%79s %d", name, &pauses) == 2)
    all.push_back({name, pauses != 0});
  if (names != nullptr) ::pclose(names);
  return all;
}

// How far one tenant was from its part, in points of the device's time: in the worst second, and in
// the mean.
struct Miss {
  double worst = 0;
  double mean = 0;
  double idle = 0;  // of the device
};

// A pattern that pauses asks for less than its part: there only the parts of the others are judged.
std::vector<Miss> measure(const std::vector<Pattern>& patterns, std::uint64_t seed, Time length) {
  TimeSharedMachine machine;
  machine.set_policy("equal");
  std::vector<pid_t> pids;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    pids.push_back(machine.run_program(
        {.name = "t" + std::to_string(i), .is_unprivileged = true},
        {attack("launch_pattern"), patterns[i].name, std::to_string(seed + i)}));
  }
  os::sleep_for(Seconds{1.5});
  const Time begin = clock_now();
  sleep_until(begin + length);
  const std::vector<Interval> log = machine.log();
  const double part = 1.0 / static_cast<double>(patterns.size());
  double busy = 0;
  for (const pid_t pid : pids)
    busy += share(log, pid, begin, begin + length);
  std::vector<Miss> misses;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    if (patterns[i].pauses) {
      misses.push_back({.idle = 1 - busy});
      continue;
    }
    misses.push_back({.worst = 100 * worst_miss(log, pids[i], part, begin, begin + length),
                      .mean = 100 * std::abs(share(log, pids[i], begin, begin + length) - part),
                      .idle = 1 - busy});
  }
  return misses;
}

class Totals {
 public:
  void add(const std::vector<Pattern>& patterns, const std::vector<Miss>& misses) {
    std::string line;
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      if (!patterns[i].pauses) of_[patterns[i].name].push_back(misses[i]);
      char text[120];
      std::snprintf(text, sizeof text, "%s%s %.2f (mean %.2f)", i == 0 ? "" : ", ",
                    patterns[i].name.c_str(), misses[i].worst, misses[i].mean);
      line += text;
    }
    std::printf("%s; idle %.1f %%\n", line.c_str(), 100 * misses.front().idle);
    std::fflush(stdout);
  }

  // How many patterns missed more than 2 points in any second.
  int print() const {
    int above = 0;
    std::vector<double> means;
    std::vector<double> worsts;
    for (const auto& [name, misses] : of_) {
      double worst = 0;
      for (const Miss& one : misses) {
        worst = std::max(worst, one.worst);
        worsts.push_back(one.worst);
        means.push_back(one.mean);
      }
      above += worst > 2 ? 1 : 0;
      if (worst > 2) std::printf("above 2 points: %s, %.2f\n", name.c_str(), worst);
    }
    std::ranges::sort(worsts);
    std::ranges::sort(means);
    double mean = 0;
    for (const double one : means)
      mean += one / static_cast<double>(means.size());
    std::printf(
        "%zu patterns, %d above 2 points in a second; worst second: median %.2f, 90 of 100 %.2f, "
        "most %.2f; mean of the misses over all seconds %.2f, most %.2f\n",
        of_.size(), above, quantile(worsts, 0.5), quantile(worsts, 0.9), quantile(worsts, 1), mean,
        quantile(means, 1));
    return above;
  }

 private:
  std::map<std::string, std::vector<Miss>> of_;
};

}  // namespace
}  // namespace regatta::gpu_time

int main(int argc, char** argv) {
  using namespace regatta::gpu_time;
  std::map<std::string, std::string> words = {
      {"seed", "1"}, {"seconds", "3"}, {"pairs", "15"}, {"eights", "5"}, {"steady", "1"}};
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    const std::size_t equals = word.find('=');
    if (equals == word.npos) return 64;
    words[word.substr(0, equals)] = word.substr(equals + 1);
  }
  const auto number = [&](const char* name) {
    return std::strtoull(words[name].c_str(), nullptr, 10);
  };
  const Time length = std::chrono::seconds(number("seconds"));
  std::vector<Pattern> patterns = all_patterns();
  std::mt19937_64 random(number("seed"));
  std::printf("%zu patterns, seed %s\n", patterns.size(), words["seed"].c_str());
  Totals totals;
  const auto run = [&](const std::vector<Pattern>& drawn) {
    totals.add(drawn, measure(drawn, random(), length));
  };
  for (const Pattern& pattern : patterns) {
    if (number("steady") == 0 || (!words["only"].empty() && pattern.name != words["only"]))
      continue;
    run({{"steady-500us", false}, pattern});
  }
  for (const auto& [word, count] : {std::pair{"pairs", 2U}, std::pair{"eights", 8U}}) {
    for (std::uint64_t i = 0; i < number(word) && words["only"].empty(); ++i) {
      std::ranges::shuffle(patterns, random);
      run({patterns.begin(), patterns.begin() + count});
    }
  }
  return totals.print() == 0 ? 0 : 1;
}
