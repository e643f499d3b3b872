#include "regatta/runtime/agent/internal/worker_log_line.h"

#include <array>
#include <cstddef>
#include <utility>

namespace regatta::agent {
namespace {

constexpr std::string_view kTimeStamp = "00:00:00.000 ";
constexpr std::array<std::pair<std::string_view, os::LogLevel>, 4> kLevels = {
    {{"debug ", os::LogLevel::kDebug},
     {"info ", os::LogLevel::kInfo},
     {"warning ", os::LogLevel::kWarning},
     {"error ", os::LogLevel::kError}}};

bool begins_with_time_stamp(std::string_view line) {
  if (line.size() < kTimeStamp.size()) return false;
  for (std::size_t i = 0; i < kTimeStamp.size(); ++i) {
    const bool is_digit = line[i] >= '0' && line[i] <= '9';
    if (kTimeStamp[i] == '0' ? !is_digit : line[i] != kTimeStamp[i]) return false;
  }
  return true;
}

}  // namespace

WorkerLogLine parse_worker_log_line(std::string_view line) {
  if (!begins_with_time_stamp(line)) return {.text = line};
  const std::string_view rest = line.substr(kTimeStamp.size());
  for (const auto& [word, level] : kLevels)
    if (rest.starts_with(word)) return {level, rest.substr(word.size())};
  return {.text = line};
}

}  // namespace regatta::agent
