// probe/internal/line_splitter.h: lines out of bytes as they come, from somebody who may send
// anything. Pure.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::probe {

// Never holds more than one line of the longest length.
class LineSplitter {
 public:
  explicit LineSplitter(std::size_t longest) : longest_(longest) {}
  // From the next line on.
  void set_longest(std::size_t longest) { longest_ = longest; }

  // Each line that is complete with `bytes`, without its end, to `take`. kInvalidInput for a line
  // that is too long, else the first error of `take`: then nothing more can be added.
  Status add(std::string_view bytes, const std::function<Status(std::string_view)>& take);

 private:
  std::size_t longest_;
  std::string rest_;  // of a line that is not complete
};

}  // namespace regatta::probe
