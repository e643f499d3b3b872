// api/change_history.h: tells watchers which objects changed, by revision, and lets them resume.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/platform/store/store.h"

namespace regatta::api {

// The latest changes, up to a bound; pure.
class ChangeHistory {
 public:
  explicit ChangeHistory(std::size_t changes_max, store::Revision first)
      : changes_max_(changes_max), dropped_(first) {}

  void add(std::span<const store::Change> changes);
  // The keys that changed after `from`, each once, with its latest revision, by rising revision;
  // nothing when some of these changes were dropped: the watcher lists again.
  std::optional<std::vector<std::pair<store::Revision, std::string>>> since(
      store::Revision from) const;
  store::Revision last() const { return changes_.empty() ? dropped_ : changes_.back().first; }

 private:
  std::size_t changes_max_;
  store::Revision dropped_;  // all changes up to it are gone
  std::deque<std::pair<store::Revision, std::string>> changes_;
};

}  // namespace regatta::api
