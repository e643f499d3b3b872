// comm/internal/transport/registration_cache.h: memory that an RDMA device may reach, registered
// once a call. To register memory pins its pages, which takes about as long as to copy it. What one
// message of a collective registered serves the others of the same call that begin at the same
// address and are no longer. It is never used for another call: the caller may give the memory back
// in between, and other memory may come to lie at the same address while the device still reaches
// the old pages. (Libraries that keep registrations hook malloc and munmap to hear of that.) An
// idle registration goes with the next call of its communicator or the second expire().
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
  // The right to use a registration; it goes back with this object.
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
  // Drops what nobody uses and nobody used since the last call.
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
