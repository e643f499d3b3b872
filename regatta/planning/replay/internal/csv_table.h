// replay/internal/csv_table.h: a table of comma-separated values: comments from '#', then a line of
// column names, then a row a line; a value in quotes may hold commas.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::replay {

class CsvRow {
 public:
  CsvRow(const std::map<std::string, std::size_t>& columns, std::vector<std::string> values)
      : columns_(&columns), values_(std::move(values)) {}

  // "" where the column is missing or the value empty.
  std::string text(const std::string& column) const;
  // Nothing where the value is no finite number.
  std::optional<double> number(const std::string& column) const;

 private:
  const std::map<std::string, std::size_t>* columns_;  // of the CsvTable
  std::vector<std::string> values_;
};

class CsvTable {
 public:
  // Fails with kInvalidInput, naming `file` and the line, where a row has more or fewer values than
  // there are columns, a quote is not closed, a column comes twice, or none is named.
  static Result<CsvTable> parse(std::string_view text, const std::string& file);
  // The names alone, in their order; rows may be anything. Fails as parse() does without rows.
  static Result<std::vector<std::string>> columns(std::string_view text, const std::string& file);

  bool has(const std::string& column) const { return columns_->contains(column); }
  const std::vector<CsvRow>& rows() const { return rows_; }

 private:
  std::shared_ptr<std::map<std::string, std::size_t>> columns_;
  std::vector<CsvRow> rows_;
};

}  // namespace regatta::replay
