// cli/internal/output_files.h: the files that a command writes: looked at before its work, and
// after it written all or none.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::cli {

struct OutputFile {
  std::string flag;  // that names it: "--out"
  std::string path;  // empty: it is not asked for
};

// Before the work. kInvalidInput, with the flag, where one is a folder, has no place that can be
// written, is a device that takes nothing, is one of the files that the command reads, or is given
// twice.
Status check_outputs(std::span<const OutputFile> outputs, std::span<const std::string> inputs);
inline Status check_outputs(std::initializer_list<OutputFile> outputs,
                            std::initializer_list<std::string> inputs = {}) {
  return check_outputs(std::span(outputs.begin(), outputs.size()),
                       std::span(inputs.begin(), inputs.size()));
}

// What is to be written, each once the others can be.
class OutputFiles {
 public:
  // Where it is asked for: make() is its text.
  template <typename Make>
  void add(const OutputFile& output, Make&& make) {
    if (!output.path.empty()) texts_.push_back({output, make()});
  }
  // Writes all, or none where one cannot be written: kInvalidInput then, with its flag.
  Status write() const;

 private:
  struct Text {
    OutputFile output;
    std::string text;
  };
  std::vector<Text> texts_;
};

}  // namespace regatta::cli
