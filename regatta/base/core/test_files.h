// core/test_files.h: for the tests of the file parsers: files that must be refused, and those that
// documents and examples show, which must be read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

inline std::string read_test_file(const std::filesystem::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct BrokenFile {
  std::string name;
  std::string text;
  std::string expected;  // the exact message
};

// Every file in `testdata`/broken; each opens with "# expect: " and the message.
inline std::vector<BrokenFile> broken_files(const std::string& testdata) {
  constexpr std::string_view kPrefix = "# expect: ";
  std::vector<BrokenFile> files;
  for (const auto& entry : std::filesystem::directory_iterator(testdata + "/broken")) {
    BrokenFile file{entry.path().filename().string(), read_test_file(entry.path()), {}};
    if (file.text.starts_with(kPrefix))
      file.expected = file.text.substr(kPrefix.size(), file.text.find('\n') - kPrefix.size());
    files.push_back(file);
  }
  return files;
}

// The texts of examples/KIND*.yaml and the YAML blocks of docs/formats/KIND.md that are whole
// files: they begin with a name.
inline std::vector<std::string> example_files(const std::string& testdata,
                                              const std::string& kind) {
  const std::filesystem::path root = std::filesystem::path(testdata) / "../../../..";
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(root / "examples")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(kind) && name.ends_with(".yaml"))
      texts.push_back(read_test_file(entry.path()));
  }
  const std::string page = read_test_file(root / "docs/formats" / (kind + ".md"));
  const std::string opening = "```yaml\n";
  for (std::size_t at = page.find(opening + "name:"); at != std::string::npos;
       at = page.find(opening + "name:", at + 1)) {
    const std::size_t start = at + opening.size();
    texts.push_back(page.substr(start, page.find("\n```\n", start) + 1 - start));
  }
  return texts;
}

}  // namespace regatta
