// bench/reliability/result_table.h: a table of results, printed as Markdown or JSON.
#pragma once

#include <string>
#include <vector>

namespace regatta::reliability {

struct ResultTable {
  std::string title;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};

}  // namespace regatta::reliability
