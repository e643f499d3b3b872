#include "regatta/platform/api/change_history.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace regatta::api {

void ChangeHistory::add(std::span<const store::Change> changes) {
  for (const store::Change& change : changes)
    changes_.emplace_back(change.revision, change.key);
  for (; changes_.size() > changes_max_; changes_.pop_front())
    dropped_ = changes_.front().first;
}

std::optional<std::vector<std::pair<store::Revision, std::string>>> ChangeHistory::since(
    store::Revision from) const {
  if (from < dropped_) return std::nullopt;
  std::vector<std::pair<store::Revision, std::string>> found;
  std::unordered_set<std::string_view> seen;
  for (auto change = changes_.rbegin(); change != changes_.rend() && change->first > from; ++change)
    if (seen.insert(change->second).second) found.push_back(*change);
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace regatta::api
