// sharing/internal/daemon/checkpoint_manager.h: processes that leave their device as a whole, by
// the driver's checkpoint calls: what of their memory cannot be moved otherwise goes with them.
// Each step of one is done by a process of its own (internal/swap/checkpoint.h), so that a driver
// that hangs stops nobody else. Where a process is stands in its page, so the next daemon goes on
// with it.
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
  std::string library = "libcuda.so.1";  // the driver; empty: nobody leaves as a whole
  Seconds lock_time{2.0};                // for work that was given to end
  Seconds timeout{30.0};                 // with the driver, beside what the copies take
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
  // Of a client with a page, all below. Whether it can leave: it has memory on this device alone,
  // none that a checkpoint cannot take, it says when it wants to come back, and the driver has the
  // calls and did not fail before.
  bool may_leave(const TenantStore& tenant_store, int client, int device) const;
  static regatta_process_state place(const TenantStore& tenant_store, int client);
  bool is_wanted_here(const TenantStore& tenant_store, int client) const;
  // The driver did not do what it was asked for, and what the process has stays on its devices.
  bool is_stuck(const TenantStore& tenant_store, int client) const;
  // The driver could not bring it back: it never comes.
  bool is_lost(int client) const;
  std::uint64_t away_since_ns(int client) const;  // or since this daemon knows

  // One that an earlier daemon left on its way.
  void notice(const TenantStore& tenant_store, int client);
  void want(const TenantStore& tenant_store, int client, bool here);
  void forget(int client);  // it has ended

  // Begins what is due and takes notice of what has ended. `may_begin`: whether a client can leave
  // now, or come back. Returns when to look again; `is_changed` when somebody left or came.
  using MayBegin = std::function<bool(int client, bool here)>;
  std::uint64_t step(TenantStore& tenant_store, std::uint64_t now, const MayBegin& may_begin,
                     bool& is_changed);

 private:
  struct ClientState {
    bool is_wanted_here = true;
    bool has_failed = false;
    pid_t helper = 0;
    pid_t ending = 0;           // one that was killed: nothing else is begun before it has gone
    std::uint64_t ends_ns = 0;  // the timeout with the helper
    std::uint64_t next_ns = 0;  // not before
    std::uint64_t away_ns = 0;
  };

  enum class Probe : std::uint8_t { kNotBegun, kUnderWay, kDone };

  std::uint64_t probe(std::uint64_t now);  // when to look again
  void end_helper(pid_t helper);
  void begin(TenantStore& tenant_store, int client, ClientState& one, std::uint64_t now);
  void end(TenantStore& tenant_store, int client, ClientState& one, CheckpointOutcome outcome,
           std::uint64_t now);
  regatta_process_state fail(const TenantStore& tenant_store, int client, ClientState& one,
                             CheckpointOutcome outcome);
  ClientState& known(const TenantStore& tenant_store, int client);

  CheckpointOptions options_;
  std::map<int, ClientState> clients_;  // those who are not simply here
  std::vector<pid_t> ending_;           // helpers that were killed for good
  Probe probe_ = Probe::kNotBegun;
  pid_t probe_pid_ = 0;
  std::uint64_t probe_ends_ns_ = 0;
  std::uint64_t probe_next_ns_ = 0;
  bool is_available_ = false;
};

}  // namespace regatta::sharing
