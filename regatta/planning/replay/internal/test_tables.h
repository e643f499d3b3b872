// replay/internal/test_tables.h: for tests: the published tables that lie beside the project.
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace regatta::replay {

// The text of the set's file; nothing where it is not there. `testdata`: REGATTA_TESTDATA, four
// folders below the project.
inline std::optional<std::string> published_table_text(const char* testdata,
                                                       const std::string& set) {
  const auto beside = std::filesystem::path(testdata) / "../../../../../shared/data/training";
  std::ifstream file(beside.lexically_normal() / (set + ".csv"));
  if (!file) return std::nullopt;
  return std::string{std::istreambuf_iterator<char>(file), {}};
}

}  // namespace regatta::replay
