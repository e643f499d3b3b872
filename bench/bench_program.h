// bench/bench_program.h: what bench programs on traces have in common: their help, their options,
// the files that they read, and their exit status.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"

namespace regatta::bench_program {

using Arguments = std::vector<std::string>;

// The body of main(). --help, or fewer than `arguments_least` arguments, print `usage` with exit
// status 0 or 2; an error of `run` is one line, and its code gives the exit status.
inline int run_program(int count, char** values, const char* usage, std::size_t arguments_least,
                       Status (*run)(Arguments)) {
  Arguments arguments(values + 1, values + count);
  const bool is_help = std::find(arguments.begin(), arguments.end(), "--help") != arguments.end();
  if (is_help || arguments.size() < arguments_least) {
    std::fputs(usage, is_help ? stdout : stderr);
    return is_help ? 0 : 2;
  }
  const Status status = run(std::move(arguments));
  if (status) return 0;
  fmt::print(stderr, "{}: {}\n", std::filesystem::path(values[0]).filename().string(),
             status.error().message);
  return exit_status(status.error());
}

// Removes `flag`; whether it was there.
inline bool take_flag(Arguments& arguments, std::string_view flag) {
  return std::erase(arguments, flag) > 0;
}

// Removes `option` and the value after it, and returns that; nothing where the option is missing.
// Fails with kInvalidInput where no value follows.
inline Result<std::optional<std::string>> take_option(Arguments& arguments,
                                                      std::string_view option) {
  const auto found = std::find(arguments.begin(), arguments.end(), option);
  if (found == arguments.end()) return std::optional<std::string>();
  if (found + 1 == arguments.end())
    return Error{Code::kInvalidInput, std::string(option) + ": a value is missing; see --help"};
  std::optional<std::string> value = *(found + 1);
  arguments.erase(found, found + 2);
  return value;
}

// `text` as a whole number within `range`. Fails with kInvalidInput, naming `what`.
inline Result<int> number_in(std::string_view what, std::string_view text, IntRange range) {
  const auto number = parse_number<int>(text);
  if (number && *number >= range.low && *number <= range.high) return *number;
  return Error{Code::kInvalidInput, fmt::format("{}: '{}' is not a whole number from {} to {}",
                                                what, printable(text, 40), range.low, range.high)};
}

// The same of an option, which is removed; `fallback` where it is missing.
inline Result<int> take_number(Arguments& arguments, std::string_view option, int fallback,
                               IntRange range) {
  REGATTA_TRY(value, take_option(arguments, option));
  return value ? number_in(option, *value, range) : Result<int>(fallback);
}

// Fails with kInvalidInput where an option is left, or more than `most` arguments are.
inline Status check_rest(const Arguments& arguments, std::size_t most) {
  for (const std::string& argument : arguments)
    if (argument.starts_with("--"))
      return Error{Code::kInvalidInput, printable(argument, 40) + ": not known; see --help"};
  if (arguments.size() > most)
    return Error{Code::kInvalidInput, fmt::format("'{}' is one argument too many; see --help",
                                                  printable(arguments[most], 40))};
  return {};
}

// Fails with kInvalidInput where the file cannot be read.
inline Result<std::string> read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return Error{Code::kInvalidInput,
                 path.string() + ": cannot be read; give the folder that --help names"};
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace regatta::bench_program
