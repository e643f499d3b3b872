#include <algorithm>
#include <utility>

#include "regatta/base/core/text.h"

namespace regatta {

void LineSplitter::append(std::string_view bytes) {
  pending_.erase(0, begin_);
  searched_ -= std::exchange(begin_, 0);
  pending_ += bytes;
}

std::optional<std::string> LineSplitter::next() {
  const std::size_t end = pending_.find('\n', searched_);
  const bool is_whole = end != std::string::npos;
  searched_ = is_whole ? end : pending_.size();
  const std::size_t size = searched_ - begin_;
  if (size > line_max_) {
    std::string piece = pending_.substr(begin_, line_max_ + 1);
    begin_ += piece.size();
    return piece;
  }
  if (!is_whole) return std::nullopt;
  std::string line = pending_.substr(begin_, size);
  begin_ = searched_ = end + 1;
  return line;
}

std::string LineSplitter::take_rest() {
  std::string rest = pending_.substr(begin_);
  pending_.clear();
  begin_ = searched_ = 0;
  return rest;
}

}  // namespace regatta
