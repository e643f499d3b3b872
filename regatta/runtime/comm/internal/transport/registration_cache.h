// comm/internal/transport/registration_cache.h: memory that is registered with an RDMA device, once
// a call: registering pins the pages, which takes about as long as copying them. Messages of the
// same call that begin at the same address and are no longer share a registration. Another call
// never uses it: the caller may free the memory in between, and other memory may be mapped at the
// same address while the device still accesses the old pages. (Libraries that keep registrations
// hook malloc and munmap for that reason.) An idle registration ends with the next call of its
// communicator or the second expire().
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/network/rdma/memory.h"
#include "regatta/runtime/comm/internal/transport/wire_header.h"

namespace regatta::comm {

using rdma::MemoryKeys;
using rdma::MemoryRange;
using rdma::MemoryRegistrar;

// Used by the progress thread alone.
class RegistrationCache {
 public:
  // The registrar outlives the cache, the cache its leases.
  explicit RegistrationCache(MemoryRegistrar& registrar);
  RegistrationCache(const RegistrationCache&) = delete;
  RegistrationCache& operator=(const RegistrationCache&) = delete;
  ~RegistrationCache();

 private:
  struct Entry;

 public:
  // The right to use a registration, which ends with this object.
  class Lease {
   public:
    Lease() = default;
    Lease(Lease&& other) noexcept { *this = std::move(other); }
    Lease& operator=(Lease&& other) noexcept {
      std::swap(cache_, other.cache_);
      std::swap(entry_, other.entry_);
      return *this;
    }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    ~Lease();

    explicit operator bool() const { return entry_ != nullptr; }
    MemoryKeys keys() const;

   private:
    friend class RegistrationCache;
    RegistrationCache* cache_ = nullptr;
    Entry* entry_ = nullptr;
  };

  // Memory for the message `key`, which is alive until the call of that message ended.
  Result<Lease> take(const MemoryRange& range, const MessageKey& key);
  // Drops registrations that no lease uses or has used since the last call.
  void expire();

  std::size_t size() const { return entries_.size(); }

 private:
  using Entries = std::multimap<const std::byte*, std::unique_ptr<Entry>>;

  void release(Entry& entry);
  // Idle registrations that no message may use any more, because another call of the communicator
  // began; all idle ones when the cache is full.
  void drop_stale(const MessageKey& key);
  Entries::iterator drop(Entries::iterator at);

  MemoryRegistrar& registrar_;
  Entries entries_;  // by address
  MessageKey newest_;
  std::uint64_t age_ = 0;
};

}  // namespace regatta::comm
