#include "regatta/replay/table.h"

#include <charconv>
#include <cmath>

#include <fmt/format.h>

#include "regatta/core/text.h"

namespace regatta::replay {
namespace {

// The values of a line; nothing where a quote is not closed.
std::optional<std::vector<std::string>> split_line(std::string_view line) {
  std::vector<std::string> values(1);
  bool is_quoted = false;
  for (const char c : line) {
    if (c == '"')
      is_quoted = !is_quoted;
    else if (c == ',' && !is_quoted)
      values.emplace_back();
    else
      values.back() += c;
  }
  if (is_quoted) return std::nullopt;
  return values;
}

}  // namespace

std::string Row::text(const std::string& column) const {
  const auto found = columns_->find(column);
  return found == columns_->end() ? "" : values_[found->second];
}

std::optional<double> Row::number(const std::string& column) const {
  const std::string value = text(column);
  double number = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (error != std::errc() || end != value.data() + value.size() || !std::isfinite(number))
    return std::nullopt;
  return number;
}

Result<Table> Table::parse(std::string_view text, const std::string& file) {
  Table table;
  int number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    if (line.empty() || line.front() == '#') continue;
    auto values = split_line(line);
    if (!values) {
      return Error{Code::kInvalidInput,
                   fmt::format("{}:{}: a quote is not closed; close it", file, number)};
    }
    if (table.columns_ == nullptr) {
      table.columns_ = std::make_shared<std::map<std::string, std::size_t>>();
      for (const std::string& name : *values)
        table.columns_->emplace(name, table.columns_->size());
      if (table.columns_->size() != values->size()) {
        return Error{Code::kInvalidInput,
                     fmt::format("{}:{}: two columns have one name; rename one", file, number)};
      }
      continue;
    }
    if (values->size() != table.columns_->size()) {
      return Error{Code::kInvalidInput,
                   fmt::format("{}:{}: {} values where {} columns are named; write one for each",
                               file, number, values->size(), table.columns_->size())};
    }
    table.rows_.emplace_back(*table.columns_, std::move(*values));
  }
  if (table.columns_ == nullptr) {
    return Error{Code::kInvalidInput,
                 file + ": no line names the columns; give a table of published runs"};
  }
  return table;
}

}  // namespace regatta::replay
