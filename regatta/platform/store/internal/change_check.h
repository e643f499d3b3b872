// store/internal/change_check.h: the caller's side of the contract of Store::commit().
#pragma once

#include <span>

#include "regatta/platform/store/store.h"

namespace regatta::store {

// Revisions that do not rise, and keys that no store takes, are bugs of the caller.
inline void check_changes(std::span<const Change> changes, Revision last) {
  for (const Change& change : changes) {
    REGATTA_CHECK(change.revision > last);
    REGATTA_CHECK(!change.key.empty() && change.key.size() <= kKeyMost);
    REGATTA_CHECK(change.key.find('\0') == change.key.npos);
    REGATTA_CHECK(!change.value || change.value->size() <= kValueMost);
    last = change.revision;
  }
}

}  // namespace regatta::store
