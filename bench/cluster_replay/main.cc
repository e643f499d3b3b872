// bench/cluster_replay/main.cc: replays public traces with policies of the scheduler and prints
// tables.

#include <algorithm>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "bench/cluster_replay/replay_table.h"
#include "regatta/base/core/text.h"

namespace regatta::cluster_replay {
namespace {

constexpr const char* kUsage =
    "usage: regatta-cluster-replay FOLDER [--json] [--jobs N] [--predict-every N] [--policy NAME]\n"
    "       [--curves FILE] [--interference K] [REPLAY...]\n"
    "FOLDER holds philly/, dlrm/ and gentd/. REPLAY is philly, philly692, philly626, philly786,\n"
    "spot or mixed;\n"
    "by default all. NAME is a policy of philly, or part of a label of spot. One waiting job in 20 "
    "is\n"
    "predicted; 0: none\n";

Result<int> number_of(const std::string& option, const std::string& value) {
  const auto number = parse_number<int>(value);
  if (number && *number >= 0) return *number;
  return Error{Code::kInvalidInput, option + ": give a number of at least 0"};
}

Status run(const std::vector<std::string>& arguments) {
  BenchOptions bench;
  bench.folder = arguments[0];
  for (std::size_t i = 1; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    const std::string value = i + 1 < arguments.size() ? arguments[i + 1] : "";
    if (argument == "--json") {
      bench.as_json = true;
    } else if (argument == "--jobs" || argument == "--predict-every") {
      REGATTA_TRY(number, number_of(argument, value));
      (argument == "--jobs" ? bench.jobs : bench.predicted_every) = number;
      ++i;
    } else if (argument == "--policy") {
      bench.policy = value;
      ++i;
    } else if (argument == "--curves") {
      bench.curves = value;
      ++i;
    } else if (argument == "--interference") {
      const auto factor = parse_number<double>(value);
      if (!factor || !(*factor >= 0 && *factor <= 2))
        return Error{Code::kInvalidInput, "--interference: give a number from 0 to 2"};
      bench.interference = *factor;
      ++i;
    } else {
      bench.only.push_back(argument);
    }
  }
  const bool has_philly = bench.only.empty() ||
                          std::any_of(bench.only.begin(), bench.only.end(),
                                      [](const auto& name) { return name.starts_with("philly"); });
  if (has_philly) REGATTA_TRY_DO(replay_philly(bench));
  const bool has_spot =
      bench.only.empty() || std::any_of(bench.only.begin(), bench.only.end(),
                                        [](const auto& name) { return name.starts_with("spot"); });
  if (has_spot) REGATTA_TRY_DO(replay_spot(bench));
  if (bench.has("mixed")) REGATTA_TRY_DO(replay_mixed(bench));
  return {};
}

}  // namespace
}  // namespace regatta::cluster_replay

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.empty() || arguments[0] == "--help") {
    std::fputs(regatta::cluster_replay::kUsage, arguments.empty() ? stderr : stdout);
    return arguments.empty() ? 2 : 0;
  }
  const regatta::Status status = regatta::cluster_replay::run(arguments);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return regatta::exit_status(status.error());
}
