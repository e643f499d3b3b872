// bench/reliability/main.cc: prints the tables of docs/benchmarks.md on failures.

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/reliability/decided_gang.h"
#include "bench/reliability/gang_tables.h"
#include "bench/reliability/risk_tables.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"

namespace regatta::reliability {
namespace {

constexpr const char* kUsage =
    "usage: regatta-reliability [--json] [--gang] [--decided SEEDS] FOLDER\n"
    "FOLDER holds failures/published_mixes.csv, titan/titan_gpu_life.csv and\n"
    "infinitehbd/faults_day_0_to_232.csv\n"
    "  --json  one JSON document instead of Markdown tables\n"
    "  --gang  the tables of the gang alone, which need failures/ only\n"
    "  --decided SEEDS  a gang that the scheduler decides about instead, over so many seeds;\n"
    "          about a minute of one core for each\n"
    "example: regatta-reliability --gang ../shared/data/cluster\n";
constexpr int kServers = 400;  // of the trace InfiniteHBD, those without a fault included

Result<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{Code::kInvalidInput,
                 path.string() +
                     ": cannot be read; give the folder that holds failures, titan and "
                     "infinitehbd"};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

void print_markdown(const ResultTable& table) {
  fmt::print("\n{}\n\n| {} |\n|{}\n", table.title, join(table.columns, " | "), [&] {
    std::string line;
    for (std::size_t i = 0; i < table.columns.size(); ++i)
      line += "---|";
    return line;
  }());
  for (const std::vector<std::string>& row : table.rows)
    fmt::print("| {} |\n", join(row, " | "));
}

void print_json(const std::vector<ResultTable>& tables) {
  nlohmann::ordered_json document = nlohmann::ordered_json::array();
  for (const ResultTable& table : tables)
    document.push_back({{"title", table.title}, {"columns", table.columns}, {"rows", table.rows}});
  fmt::print("{}\n", document.dump(1));
}

struct Arguments {
  bool is_json = false;
  bool is_gang_alone = false;
  int decided_seeds = 0;  // 0: the other tables
  std::filesystem::path folder;
};

Result<Arguments> parse_arguments(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (word == "--decided") {
      const auto seeds = i + 1 < words.size() ? parse_number<int>(words[++i]) : std::nullopt;
      if (!seeds || *seeds < 1 || *seeds > 100)
        return Error{Code::kInvalidInput, "--decided: give a number of seeds from 1 to 100"};
      arguments.decided_seeds = *seeds;
      continue;
    }
    if (word == "--json")
      arguments.is_json = true;
    else if (word == "--gang")
      arguments.is_gang_alone = true;
    else if (word.starts_with("-"))
      return Error{Code::kInvalidInput,
                   fmt::format("unknown option '{}'; see --help", printable(word, 40))};
    else if (!arguments.folder.empty())
      return Error{Code::kInvalidInput,
                   fmt::format("'{}' is a second folder; give one", printable(word, 80))};
    else
      arguments.folder = word;
  }
  if (arguments.folder.empty()) return Error{Code::kInvalidInput, "no folder is given; see --help"};
  return arguments;
}

Result<std::vector<ResultTable>> forecast_tables(const std::filesystem::path& folder) {
  REGATTA_TRY(lives, read_text(folder / "titan/titan_gpu_life.csv"));
  REGATTA_TRY(gpus, read_gpu_lives(lives, "titan_gpu_life.csv"));
  REGATTA_TRY(faults, read_text(folder / "infinitehbd/faults_day_0_to_232.csv"));
  REGATTA_TRY(servers, read_server_faults(faults, "faults_day_0_to_232.csv", kServers));
  return risk_tables(gpus, servers);
}

Status run(const std::vector<std::string>& words) {
  REGATTA_TRY(arguments, parse_arguments(words));
  REGATTA_TRY(text, read_text(arguments.folder / "failures/published_mixes.csv"));
  REGATTA_TRY(mixes, read_failure_mixes(text, "published_mixes.csv"));
  REGATTA_TRY(llama3, find_failure_mix(mixes, "llama3"));
  REGATTA_TRY(tables, arguments.decided_seeds > 0
                          ? decided_gang_tables(llama3, arguments.decided_seeds)
                          : gang_tables(llama3));
  if (!arguments.is_gang_alone && arguments.decided_seeds == 0) {
    REGATTA_TRY(forecasts, forecast_tables(arguments.folder));
    tables.insert(tables.end(), forecasts.begin(), forecasts.end());
  }
  if (arguments.is_json) {
    print_json(tables);
    return {};
  }
  for (const ResultTable& table : tables)
    print_markdown(table);
  return {};
}

}  // namespace
}  // namespace regatta::reliability

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  if (!words.empty() && words[0] == "--help") {
    std::fputs(regatta::reliability::kUsage, stdout);
    return 0;
  }
  const regatta::Status status = regatta::reliability::run(words);
  if (status) return 0;
  fmt::print(stderr, "regatta-reliability: {}\n", status.error().message);
  return regatta::exit_status(status.error());
}
