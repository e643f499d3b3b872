// bench/mixing/main.cc: prints how many pods share a GPU, which modes are chosen, and what a
// service lends by night, from public traces.

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "bench/mixing/mixing_report.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"

namespace regatta::mixing {
namespace {

constexpr const char* kUsage =
    "usage: regatta-mixing FOLDER [--memory MIB] [--json]\n"
    "FOLDER holds gentd/gpu_duty_cycle.csv, gentd/qps_1min.csv and gavel/gavel_throughputs.csv.\n"
    "--memory: of each pod on a GPU of 80 GiB; 8192 when left out\n"
    "Example: regatta-mixing traces --memory 4096\n";

// One line for each object, and the keys of the first one as names of the columns.
std::string as_table(const nlohmann::ordered_json& rows) {
  std::vector<std::vector<std::string>> table(1);
  for (const auto& [key, value] : rows.front().items())
    table.front().push_back(key);
  for (const auto& row : rows) {
    table.emplace_back();
    for (const auto& [key, value] : row.items())
      table.back().push_back(value.is_number_float() ? fmt::format("{:.4g}", value.get<double>())
                             : value.is_string()     ? value.get<std::string>()
                                                     : value.dump());
  }
  return format_table(table);
}

Status run(bench_program::Arguments arguments) {
  ReportOptions options;
  const bool is_json = bench_program::take_flag(arguments, "--json");
  const int memory = static_cast<int>(options.memory.value >> 20);
  REGATTA_TRY(mebibytes, bench_program::take_number(arguments, "--memory", memory, {2, 80 << 10}));
  options.memory = Bytes{static_cast<long long>(mebibytes) << 20};
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 1));
  if (arguments.empty()) return Error{Code::kInvalidInput, "no folder of traces; see --help"};
  options.folder = arguments.front();
  REGATTA_TRY(report, mixing_report(options));
  if (is_json) {
    fmt::print("{}\n", report.dump(2));
    return {};
  }
  for (const auto& [name, part] : report.items()) {
    if (part.is_array())
      fmt::print("{}\n{}\n", name, as_table(part));
    else
      fmt::print("{}\n{}\n\n", name, part.dump());
  }
  return {};
}

}  // namespace
}  // namespace regatta::mixing

int main(int argc, char** argv) {
  return regatta::bench_program::run_program(argc, argv, regatta::mixing::kUsage, 1,
                                             regatta::mixing::run);
}
