// bench/mixing/main.cc: prints how many pods share a GPU, which modes are chosen, and what a
// service lends by night, from public traces.

#include <cstdio>
#include <string>
#include <vector>

#include <fmt/format.h>

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

Result<ReportOptions> parse_arguments(const std::vector<std::string>& arguments, bool& is_json) {
  ReportOptions options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--json") {
      is_json = true;
    } else if (argument == "--memory") {
      const auto memory =
          i + 1 < arguments.size() ? parse_number<int>(arguments[++i]) : std::nullopt;
      if (!memory || *memory < 2 || *memory > 80 * 1024)
        return Error{Code::kInvalidInput, "--memory: give a number of MiB from 2 to 81920"};
      options.memory = Bytes{static_cast<long long>(*memory) << 20};
    } else if (argument.starts_with("--") || !options.folder.empty()) {
      return Error{Code::kInvalidInput, printable(argument, 40) + ": not known; see --help"};
    } else {
      options.folder = argument;
    }
  }
  if (options.folder.empty()) return Error{Code::kInvalidInput, "no folder of traces; see --help"};
  return options;
}

Status run(const std::vector<std::string>& arguments) {
  bool is_json = false;
  REGATTA_TRY(options, parse_arguments(arguments, is_json));
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
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (!arguments.empty() && arguments[0] == "--help") {
    std::fputs(regatta::mixing::kUsage, stdout);
    return 0;
  }
  const regatta::Status status = regatta::mixing::run(arguments);
  if (status) return 0;
  fmt::print(stderr, "{}\n", status.error().message);
  return regatta::exit_status(status.error());
}
