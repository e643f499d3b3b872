#include "regatta/network/heal/internal/retry.h"

#include <algorithm>
#include <utility>

namespace regatta::heal {

bool Retry::fail(const std::string& failure, Seconds now) {
  if (!due_) {
    due_ = now + pause_;
    pause_ = std::min(pause_ * 2.0, kLongestPause);
  }
  if (std::ranges::find(failures_, failure) != failures_.end()) return false;
  failures_.push_back(failure);
  return std::ranges::find(former_, failure) == former_.end();
}

bool Retry::begin(Seconds now) {
  if (!due_ || now < *due_) return false;
  due_.reset();
  ++tries_;
  former_ = std::exchange(failures_, {});
  return true;
}

std::optional<Retry::Success> Retry::end() {
  if (due_) return std::nullopt;
  std::optional<Success> success;
  if (!former_.empty()) success = {former_.back(), tries_};
  *this = Retry();
  return success;
}

}  // namespace regatta::heal
