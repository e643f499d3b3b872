// bench/reliability/main.cc: prints the tables of docs/benchmarks.md on failures.

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/bench_program.h"
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

Result<std::vector<ResultTable>> forecast_tables(const std::filesystem::path& folder) {
  REGATTA_TRY(lives, bench_program::read_text(folder / "titan/titan_gpu_life.csv"));
  REGATTA_TRY(gpus, read_gpu_lives(lives, "titan_gpu_life.csv"));
  REGATTA_TRY(faults, bench_program::read_text(folder / "infinitehbd/faults_day_0_to_232.csv"));
  REGATTA_TRY(servers, read_server_faults(faults, "faults_day_0_to_232.csv", kServers));
  return risk_tables(gpus, servers);
}

Status run(bench_program::Arguments arguments) {
  const bool is_json = bench_program::take_flag(arguments, "--json");
  const bool is_gang_alone = bench_program::take_flag(arguments, "--gang");
  // 0: the other tables.
  REGATTA_TRY(seeds, bench_program::take_number(arguments, "--decided", 0, IntRange{1, 100}));
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 1));
  if (arguments.empty()) return Error{Code::kInvalidInput, "no folder is given; see --help"};
  const std::filesystem::path folder = arguments.front();
  REGATTA_TRY(text, bench_program::read_text(folder / "failures/published_mixes.csv"));
  REGATTA_TRY(mixes, read_failure_mixes(text, "published_mixes.csv"));
  REGATTA_TRY(llama3, find_failure_mix(mixes, "llama3"));
  REGATTA_TRY(tables, seeds > 0 ? decided_gang_tables(llama3, seeds) : gang_tables(llama3));
  if (!is_gang_alone && seeds == 0) {
    REGATTA_TRY(forecasts, forecast_tables(folder));
    tables.insert(tables.end(), forecasts.begin(), forecasts.end());
  }
  if (is_json) {
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
  return regatta::bench_program::run_program(argc, argv, regatta::reliability::kUsage, 1,
                                             regatta::reliability::run);
}
