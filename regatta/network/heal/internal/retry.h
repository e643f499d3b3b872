// heal/internal/retry.h: when what failed is tried again, and which failures are news. Pure: time
// is an argument.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"

namespace regatta::heal {

// A try begins with begin() or with any other call of fail(), and ends with end().
class Retry {
 public:
  // The next try is due after a pause that doubles from failure to failure. Whether subscribers are
  // to hear of it: not again where the try before failed in the same way.
  bool fail(const std::string& failure, Seconds now);
  // True when the next try is due: it is this one.
  bool begin(Seconds now);
  // The last failure when nothing fails any more, with the number of tries; once.
  struct Success {
    std::string failure;
    int tries = 0;
  };
  std::optional<Success> end();

  // When the next try is due; none while nothing fails.
  const std::optional<Seconds>& due() const { return due_; }

 private:
  static constexpr Seconds kFirstPause{0.1};
  static constexpr Seconds kLongestPause{5.0};

  std::optional<Seconds> due_;
  Seconds pause_ = kFirstPause;
  int tries_ = 1;
  std::vector<std::string> failures_;  // since the last begin()
  std::vector<std::string> former_;    // of the try before
};

}  // namespace regatta::heal
