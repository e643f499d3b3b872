// sharing/state.h: the daemon's state in one mapped file. A daemon that is killed at any
// instruction leaves a state that the next one continues. The format is docs/formats/gpu_state.md.
// No half of a change is ever visible: the mark `live` is written last when a record begins and
// first when it ends.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"
#include "regatta/gpu/sharing/internal/policy/share.h"

namespace regatta::sharing {

constexpr int kDevicesMax = REGATTA_DEVICES_MAX;
constexpr int kTenantsMax = REGATTA_TENANTS_MAX;
constexpr int kClientsMax = 4096;

inline constexpr std::uint32_t kHighPriority = 1;
inline constexpr std::uint32_t kOpenOnFault = 2;
inline constexpr std::uint32_t kOvercommit = 4;
// The length of its leases of the device, in seconds, from this bit on; 0: none.
inline constexpr unsigned kLeaseBit = 8;
inline constexpr std::uint32_t kLeaseMost = (1U << (32 - kLeaseBit)) - 1;

struct TenantRecord {
  std::uint32_t live;
  std::uint32_t compute_ppm;
  std::uint32_t weight;
  std::uint32_t flags;  // kHighPriority, kOpenOnFault, kOvercommit; kLeaseBit
  char name[48];        // ends with a zero
  unsigned char token[16];
  std::uint64_t quota[kDevicesMax];
};

// A lease, and the change in progress: `next` is written first, then the lease counter gets the
// generation after `generation`, then `leased` and `generation` follow.
struct LeaseRecord {
  std::uint64_t leased;
  std::uint64_t next;
  std::uint32_t generation;
  std::uint32_t padding;
};

// A process of a tenant, from `regatta gpu run` or its first call to its end.
struct ClientRecord {
  std::uint32_t live;
  std::int32_t pid;
  std::uint64_t start;  // ticks since boot at its start; with the pid it is unique
  std::uint32_t tenant;
  std::uint32_t padding;
  std::uint64_t page_inode;  // of its client page; 0: it has none
  LeaseRecord leases[kDevicesMax];
};

struct StateFile {
  std::uint64_t magic;
  std::uint32_t version;
  std::uint32_t policy;
  char boot_id[40];
  TenantRecord tenants[kTenantsMax];
  ClientRecord clients[kClientsMax];
};

// The mapped file, with a lock that keeps other daemons away.
class MappedState {
 public:
  // Opens or makes DIR/state. Clients of an earlier boot are dropped. kConflict when another daemon
  // uses the folder, kInvalidInput when the file is damaged or of another version.
  static Result<MappedState> open(const std::string& folder);
  MappedState(MappedState&& other) noexcept;
  MappedState& operator=(MappedState&& other) = delete;
  MappedState(const MappedState&) = delete;
  MappedState& operator=(const MappedState&) = delete;
  ~MappedState();

  StateFile& operator*() const { return *file_; }
  StateFile* operator->() const { return file_; }
  const std::string& folder() const { return folder_; }

 private:
  MappedState(std::string folder, os::UniqueFd lock, StateFile* file)
      : folder_(std::move(folder)), lock_(std::move(lock)), file_(file) {}

  std::string folder_;
  os::UniqueFd lock_;
  StateFile* file_ = nullptr;
};

// A store that a killed daemon has made or not made, in program order.
template <typename T>
void store(T& where, T value) {
  __atomic_store_n(&where, value, __ATOMIC_SEQ_CST);
}
// A load of a word that a client may store at the same time.
template <typename T>
T load(const T& where) {
  return __atomic_load_n(&where, __ATOMIC_SEQ_CST);
}

}  // namespace regatta::sharing
