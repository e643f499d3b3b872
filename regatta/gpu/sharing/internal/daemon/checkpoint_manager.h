// sharing/internal/daemon/checkpoint_manager.h: takes whole processes off their devices by the
// driver's checkpoint calls, with all memory that cannot be moved otherwise. Each step runs in a
// helper process (internal/swap/checkpoint.h), so a driver that hangs stops nothing else. The state
// of a process is in its page, so the next daemon continues it.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"
#include "regatta/gpu/sharing/internal/swap/checkpoint.h"

namespace regatta::sharing {

struct CheckpointOptions {
  std::string library = "libcuda.so.1";  // the driver; empty: no checkpoints
  Seconds lock_time{2.0};                // for work in progress to end
  Seconds timeout{30.0};                 // of the driver, beside the time of the copies
};

class CheckpointManager {
 public:
  explicit CheckpointManager(CheckpointOptions options) : options_(std::move(options)) {}
  CheckpointManager(CheckpointManager&& other) noexcept;
  CheckpointManager& operator=(CheckpointManager&& other) = delete;
  CheckpointManager(const CheckpointManager&) = delete;
  ~CheckpointManager();

  bool is_available() const { return is_available_; }
  bool is_decided() const { return options_.library.empty() || probe_ == Probe::kDone; }
  // All below need a client with a page. Whether the client can be checkpointed: it has memory on
  // this device only, none of it is pinned, it watches for the time to come back, and the driver
  // has the calls and did not fail before.
  bool may_leave(const TenantStore& tenant_store, int client, int device) const;
  static regatta_process_state place(const TenantStore& tenant_store, int client);
  bool is_wanted_here(const TenantStore& tenant_store, int client) const;
  // The driver failed, and the process's memory stays on its devices.
  bool is_stuck(const TenantStore& tenant_store, int client) const;
  // The driver could not restore it: it never comes back.
  bool is_lost(int client) const;
  std::uint64_t away_since_ns(int client) const;  // or since this daemon knows it

  // Takes over a client that an earlier daemon was moving.
  void notice(const TenantStore& tenant_store, int client);
  // Whether the client's memory is to be on the device; the steps follow.
  void set_target(const TenantStore& tenant_store, int client, bool is_resident);
  void forget(int client);  // it has ended

  // Begins the steps that are due and ends those that are done. `may_begin`: whether a client can
  // leave now, or come back. Returns when to call again; sets `is_changed` when a client left or
  // came.
  using MayBegin = std::function<bool(int client, bool here)>;
  std::uint64_t step(TenantStore& tenant_store, std::uint64_t now, const MayBegin& may_begin,
                     bool& is_changed);

 private:
  struct ClientState {
    bool is_wanted_here = true;
    bool has_failed = false;
    pid_t helper = 0;
    pid_t ending = 0;           // a helper that was killed: no other begins before it is gone
    std::uint64_t ends_ns = 0;  // the timeout with the helper
    std::uint64_t next_ns = 0;  // not before
    std::uint64_t away_ns = 0;
  };

  enum class Probe : std::uint8_t { kNotBegun, kUnderWay, kDone };

  std::uint64_t probe(std::uint64_t now);  // returns when to call again
  void end_helper(pid_t helper);
  void begin(TenantStore& tenant_store, int client, ClientState& one, std::uint64_t now);
  void end(TenantStore& tenant_store, int client, ClientState& one, CheckpointOutcome outcome,
           std::uint64_t now);
  regatta_process_state fail(const TenantStore& tenant_store, int client, ClientState& one,
                             CheckpointOutcome outcome);
  ClientState& known(const TenantStore& tenant_store, int client);

  CheckpointOptions options_;
  std::map<int, ClientState> clients_;  // those that are not simply on their devices
  std::vector<pid_t> ending_;           // killed helpers that are not waited for
  Probe probe_ = Probe::kNotBegun;
  pid_t probe_pid_ = 0;
  std::uint64_t probe_ends_ns_ = 0;
  std::uint64_t probe_next_ns_ = 0;
  bool is_available_ = false;
};

}  // namespace regatta::sharing
