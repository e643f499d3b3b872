#include "regatta/platform/packing/table_rows.h"

#include <algorithm>

#include <fmt/format.h>

namespace regatta::packing {

Result<TableRows> TableRows::open(std::string_view text, const std::string& file,
                                  const std::vector<std::string>& needed) {
  TableRows rows;
  rows.rest_ = text;
  rows.file_ = file;
  const std::size_t end = text.find('\n');
  std::string_view head = text.substr(0, end);
  rows.rest_ = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
  rows.line_ = 1;
  if (head.ends_with('\r')) head.remove_suffix(1);
  rows.columns_ = split(head, ',');
  for (const std::string& column : needed) {
    const auto times = std::count(rows.columns_.begin(), rows.columns_.end(), column);
    if (times == 1) continue;
    return Error{Code::kInvalidInput,
                 times == 0
                     ? fmt::format("{}:1: no column '{}'; name the columns {} in the first line",
                                   file, column, join(needed, ", "))
                     : fmt::format("{}:1: two columns are called '{}'; rename one", file, column)};
  }
  return rows;
}

Result<bool> TableRows::next() {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    std::string_view line = rest_.substr(0, end);
    rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
    ++line_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    values_ = split(line, ',');
    if (values_.size() == columns_.size()) return true;
    return Error{Code::kInvalidInput,
                 fmt::format("{}:{}: {} values where {} columns are named; write one for each",
                             file_, line_, values_.size(), columns_.size())};
  }
  return false;
}

bool TableRows::has(std::string_view column) const {
  return std::find(columns_.begin(), columns_.end(), column) != columns_.end();
}

std::string_view TableRows::text(std::string_view column) const {
  const auto found = std::find(columns_.begin(), columns_.end(), column);
  if (found == columns_.end()) return "";
  return values_[static_cast<std::size_t>(found - columns_.begin())];
}

Result<int> TableRows::number(std::string_view column, IntRange range) const {
  const auto number = parse_number<int>(text(column));
  if (number && *number >= range.low && *number <= range.high) return *number;
  return Error{Code::kInvalidInput,
               fmt::format("{}:{}: {}: '{}' is not a whole number from {} to {}; correct it", file_,
                           line_, column, printable(text(column), 40), range.low, range.high)};
}

Result<double> TableRows::fraction(std::string_view column, NumberRange range) const {
  const auto number = parse_number<double>(text(column));
  if (number && *number >= range.low && *number <= range.high) return *number;
  return Error{Code::kInvalidInput,
               fmt::format("{}:{}: {}: '{}' is not a number from {} to {}; correct it", file_,
                           line_, column, printable(text(column), 40), range.low, range.high)};
}

}  // namespace regatta::packing
