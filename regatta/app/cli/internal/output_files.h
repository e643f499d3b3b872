// cli/internal/output_files.h: the files that a command writes: checked before its work, and
// written after it, all or none.
#pragma once

#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::cli {

struct OutputFile {
  std::string flag;  // "--out"
  std::string path;  // empty: not requested
};

// Before the work. kInvalidInput, with the flag: a path is a folder, cannot be written, is a device
// that is full, is one of the files that the command reads, or is given twice.
Status check_outputs(std::span<const OutputFile> outputs, std::span<const std::string> inputs);
inline Status check_outputs(std::initializer_list<OutputFile> outputs,
                            std::initializer_list<std::string> inputs = {}) {
  return check_outputs(std::span(outputs.begin(), outputs.size()),
                       std::span(inputs.begin(), inputs.size()));
}

// After the work: kExhausted where a disk is full, else kUnavailable. Exit status 1.
Error write_error(const OutputFile& output, const Error& error);

class OutputFiles {
 public:
  // Adds a requested output; make() returns its text.
  template <typename Make>
  void add(const OutputFile& output, Make&& make) {
    if (!output.path.empty()) texts_.push_back({output, make()});
  }
  // Writes all outputs, or none where one cannot be written: write_error().
  Status write() const;

 private:
  struct Text {
    OutputFile output;
    std::string text;
  };
  std::vector<Text> texts_;
};

}  // namespace regatta::cli
