#include "regatta/network/probe/internal/line_splitter.h"

#include <utility>

namespace regatta::probe {

Status LineSplitter::add(std::string_view bytes,
                         const std::function<Status(std::string_view)>& take) {
  while (!bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    const std::string_view part = bytes.substr(0, end);
    if (rest_.size() + part.size() > longest_)
      return Error{Code::kInvalidInput, "a line is longer than the " + std::to_string(longest_) +
                                            " bytes of any prober"};
    if (end == std::string_view::npos) {
      rest_ += part;
      return {};
    }
    bytes.remove_prefix(end + 1);
    if (rest_.empty()) {
      REGATTA_TRY_DO(take(part));
      continue;
    }
    const std::string line = std::exchange(rest_, {}).append(part);
    REGATTA_TRY_DO(take(line));
  }
  return {};
}

}  // namespace regatta::probe
