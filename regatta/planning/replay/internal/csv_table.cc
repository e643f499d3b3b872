#include "regatta/planning/replay/internal/csv_table.h"

#include <cmath>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

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

// Lines that are neither empty nor comments, one after the other.
class Lines {
 public:
  Lines(std::string_view text, const std::string& file) : rest_(text), file_(file) {}

  int number() const { return number_; }
  // The values of the next; nothing at the end.
  Result<std::optional<std::vector<std::string>>> next() {
    while (!rest_.empty()) {
      const std::size_t end = rest_.find('\n');
      std::string_view line = rest_.substr(0, end);
      rest_ = end == std::string_view::npos ? std::string_view() : rest_.substr(end + 1);
      ++number_;
      if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
      if (line.empty() || line.front() == '#') continue;
      if (auto values = split_line(line)) return values;
      return Error{Code::kInvalidInput,
                   fmt::format("{}:{}: a quote is not closed; close it", file_, number_)};
    }
    return std::optional<std::vector<std::string>>();
  }

 private:
  std::string_view rest_;
  const std::string& file_;
  int number_ = 0;
};

Result<std::vector<std::string>> head_of(Lines& lines, const std::string& file) {
  REGATTA_TRY(names, lines.next());
  if (!names) {
    return Error{Code::kInvalidInput,
                 file + ": no line names the columns; give a table of measured runs"};
  }
  for (std::size_t i = 0; i < names->size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      if ((*names)[i] != (*names)[j]) continue;
      return Error{Code::kInvalidInput,
                   fmt::format("{}:{}: two columns are called '{}'; rename one", file,
                               lines.number(), printable((*names)[i], 40))};
    }
  }
  return *std::move(names);
}

// A row has one value for each column.
Status check_length(const std::vector<std::string>& values, const std::vector<std::string>& names,
                    const std::string& file, int line) {
  if (values.size() == names.size()) return {};
  const std::string which =
      values.size() < names.size()
          ? fmt::format("none for '{}'", printable(names[values.size()], 40))
          : fmt::format("none named for '{}'", printable(values[names.size()], 40));
  return Error{Code::kInvalidInput,
               fmt::format("{}:{}: {} values where {} columns are named, {}; write one for each",
                           file, line, values.size(), names.size(), which)};
}

}  // namespace

std::string CsvRow::text(const std::string& column) const {
  const auto found = columns_->find(column);
  return found == columns_->end() ? "" : values_[found->second];
}

std::optional<double> CsvRow::number(const std::string& column) const {
  const auto number = parse_number<double>(text(column));
  return number && std::isfinite(*number) ? number : std::nullopt;
}

Result<CsvTable> CsvTable::parse(std::string_view text, const std::string& file) {
  Lines lines(text, file);
  REGATTA_TRY(names, head_of(lines, file));
  CsvTable table;
  table.columns_ = std::make_shared<std::map<std::string, std::size_t>>();
  for (const std::string& name : names)
    table.columns_->emplace(name, table.columns_->size());
  for (;;) {
    REGATTA_TRY(values, lines.next());
    if (!values) return table;
    REGATTA_TRY_DO(check_length(*values, names, file, lines.number()));
    table.rows_.emplace_back(*table.columns_, *std::move(values));
  }
}

Result<std::vector<std::string>> CsvTable::columns(std::string_view text, const std::string& file) {
  Lines lines(text, file);
  return head_of(lines, file);
}

}  // namespace regatta::replay
