#include "regatta/runtime/comm/internal/transport/registration_cache.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::comm {
namespace {

constexpr std::size_t kEntriesMax = 1024;

}  // namespace

struct RegistrationCache::Entry {
  MemoryRange range;
  MessageKey key;  // of the message that it was made for
  MemoryRegistrar::Registered registered;
  int users = 0;
  std::uint64_t used_at = 0;
  Entries::iterator at;

  bool covers(const MemoryRange& other) const {
    return range.data <= other.data && other.data + other.bytes <= range.data + range.bytes &&
           (range.is_writable || !other.is_writable);
  }
  // Only a collective has one name for all its messages.
  bool serves(const MessageKey& other) const {
    return key == other || (!is_point_to_point(key) && key.group == other.group &&
                            key.operation == other.operation);
  }
};

RegistrationCache::Lease::~Lease() {
  if (entry_ != nullptr) cache_->release(*entry_);
}

MemoryKeys RegistrationCache::Lease::keys() const {
  return entry_->registered.keys;
}

RegistrationCache::RegistrationCache(MemoryRegistrar& registrar) : registrar_(registrar) {}

RegistrationCache::~RegistrationCache() {
  for (auto at = entries_.begin(); at != entries_.end();) {
    REGATTA_CHECK(at->second->users == 0);
    at = drop(at);
  }
}

Result<RegistrationCache::Lease> RegistrationCache::take(const MemoryRange& range,
                                                         const MessageKey& key) {
  drop_stale(key);
  Entry* found = nullptr;
  const auto [first, last] = entries_.equal_range(range.data);
  for (auto at = first; at != last; ++at)
    if (at->second->covers(range) && at->second->serves(key)) found = at->second.get();
  if (found == nullptr) {
    REGATTA_TRY(registered, registrar_.add(range));
    auto entry = std::make_unique<Entry>();
    entry->range = range;
    entry->key = key;
    entry->registered = registered;
    found = entry.get();
    found->at = entries_.emplace(range.data, std::move(entry));
  }
  ++found->users;
  found->used_at = age_;
  Lease lease;
  lease.cache_ = this;
  lease.entry_ = found;
  return lease;
}

void RegistrationCache::release(Entry& entry) {
  --entry.users;
  entry.used_at = age_;
  // A send or receive has one message: no other message may use its registration.
  if (entry.users == 0 && is_point_to_point(entry.key)) drop(entry.at);
}

void RegistrationCache::drop_stale(const MessageKey& key) {
  const bool is_full = entries_.size() >= kEntriesMax;
  const bool is_same = newest_.group == key.group && newest_.operation == key.operation;
  newest_ = key;
  if (is_same && !is_full) return;
  for (auto at = entries_.begin(); at != entries_.end();) {
    const Entry& entry = *at->second;
    const bool is_past = entry.key.group == key.group && !entry.serves(key);
    at = entry.users == 0 && (is_full || is_past) ? drop(at) : std::next(at);
  }
}

void RegistrationCache::expire() {
  for (auto at = entries_.begin(); at != entries_.end();) {
    const Entry& entry = *at->second;
    at = entry.users == 0 && entry.used_at < age_ ? drop(at) : std::next(at);
  }
  ++age_;
}

RegistrationCache::Entries::iterator RegistrationCache::drop(Entries::iterator at) {
  registrar_.remove(at->second->registered.handle);
  return entries_.erase(at);
}

}  // namespace regatta::comm
