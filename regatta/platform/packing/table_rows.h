// packing/table_rows.h: lines of comma-separated values below a line of column names,
// without quotes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"

namespace regatta::packing {

class TableRows {
 public:
  // Reads the names. Fails with kInvalidInput where a column of `needed` is missing or comes twice.
  static Result<TableRows> open(std::string_view text, const std::string& file,
                                const std::vector<std::string>& needed);

  // Goes to the next line that is not empty. False at the end. Fails where it has another number of
  // values than there are columns.
  Result<bool> next();

  bool has(std::string_view column) const;
  // The value in the line; "" where there is no such column.
  std::string_view text(std::string_view column) const;
  Result<int> number(std::string_view column, IntRange range) const;
  Result<double> fraction(std::string_view column, NumberRange range) const;

 private:
  std::string_view rest_;
  std::string file_;
  int line_ = 0;
  std::vector<std::string> columns_;
  std::vector<std::string> values_;
};

}  // namespace regatta::packing
