// diag/internal/path_tally.h: the packets sent and lost on each path, by window, over the windows
// that count.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/internal/explain.h"
#include "regatta/network/diag/observation.h"

namespace regatta::diag {

class PathTally {
 public:
  PathTally(Window first, Window last)
      : first_(first), last_(last), windows_(static_cast<std::size_t>(last - first + 1)) {}

  Window first() const { return first_; }
  Window last() const { return last_; }
  bool covers(Window window) const { return window >= first_ && window <= last_; }

  // The number of the new path. `links` must outlive this; the others as in PathCounts.
  std::size_t add_path(std::span<const std::uint32_t> links, double background = 0,
                       NodeId answered_by = {}) {
    paths_.push_back({links, background, answered_by});
    sent_.resize(paths_.size() * windows_);
    lost_.resize(paths_.size() * windows_);
    return paths_.size() - 1;
  }
  void set(std::size_t path, Window window, std::uint32_t sent, std::uint32_t lost) {
    const std::size_t cell = path * windows_ + static_cast<std::size_t>(window - first_);
    sent_[cell] = static_cast<std::uint16_t>(sent);
    lost_[cell] = static_cast<std::uint16_t>(lost);
  }

  // As if nothing had been sent in these windows, of which those outside are ignored.
  void clear(std::size_t path, Window first, Window last) {
    for (Window window = std::max(first, first_); window <= std::min(last, last_); ++window)
      set(path, window, 0, 0);
  }

  std::size_t size() const { return paths_.size(); }
  std::span<const std::uint32_t> links(std::size_t path) const { return paths_[path].links; }
  // Packets sent and lost.
  std::pair<std::uint16_t, std::uint16_t> counts_at(std::size_t path, Window window) const {
    const std::size_t cell = path * windows_ + static_cast<std::size_t>(window - first_);
    return {sent_[cell], lost_[cell]};
  }
  bool has_lost(std::size_t path) const {
    return std::ranges::any_of(windows_of(lost_, path),
                               [](std::uint16_t count) { return count > 0; });
  }
  // Views of this.
  std::vector<PathCounts> counts() const {
    std::vector<PathCounts> all;
    for (std::size_t path = 0; path < paths_.size(); ++path)
      all.push_back({paths_[path].links, windows_of(sent_, path), windows_of(lost_, path),
                     paths_[path].background, paths_[path].answered_by});
    return all;
  }

  std::map<NodeId, Evidence> noise;  // losses that do not count, by the server that was busy

 private:
  struct Path {
    std::span<const std::uint32_t> links;
    double background = 0;
    NodeId answered_by;
  };

  std::span<const std::uint16_t> windows_of(const std::vector<std::uint16_t>& cells,
                                            std::size_t path) const {
    return std::span(cells).subspan(path * windows_, windows_);
  }

  Window first_;
  Window last_;
  std::size_t windows_;
  std::vector<Path> paths_;
  std::vector<std::uint16_t> sent_;  // path * windows + window
  std::vector<std::uint16_t> lost_;
};

}  // namespace regatta::diag
