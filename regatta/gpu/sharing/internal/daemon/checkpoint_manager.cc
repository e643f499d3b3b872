#include "regatta/gpu/sharing/internal/daemon/checkpoint_manager.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <sys/wait.h>

#include "regatta/base/os/log.h"
#include "regatta/base/os/memory.h"
#include "regatta/gpu/sharing/internal/daemon/timer_fd.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kCheckpointMs = 1'000'000;
constexpr std::uint64_t kCheckpointPollNs = 2 * kCheckpointMs;
constexpr std::uint64_t kAgainNs = 100 * kCheckpointMs;  // after work did not end in time
constexpr std::uint64_t kStuckNs =
    1000 * kCheckpointMs;             // after the driver did not restore a process
constexpr double kSlowestLink = 1e9;  // bytes a second; the timeout allows for copies at this rate

// None: it goes on.
std::optional<CheckpointOutcome> outcome_of(pid_t helper) {
  int status = 0;
  const pid_t ended = ::waitpid(helper, &status, WNOHANG);
  if (ended == 0) return std::nullopt;
  return ended == helper ? checkpoint_outcome(status) : CheckpointOutcome::kUnknown;
}

// A process that is blocked in a driver's kernel code dies only when that returns: it is killed and
// not waited for.
bool has_gone(pid_t helper) {
  return ::waitpid(helper, nullptr, WNOHANG) != 0;
}

const char* what_failed(CheckpointOutcome outcome, bool comes) {
  switch (outcome) {
    case CheckpointOutcome::kLocked:
      return "does not let it go on; it is asked again, end the process if that does not help";
    case CheckpointOutcome::kUnknown:
      return "does not say where it is; it is asked again, end the process if that does not help";
    case CheckpointOutcome::kBroken:
      return "has given it up; end the process";
    default:
      return comes ? "cannot take it back to its GPU; end the process"
                   : "cannot take it off its GPU; what it has there stays";
  }
}

// Wakes the threads of the client that wait for orders.
void put(TenantStore& tenant_store, int client, regatta_process_state place) {
  store(tenant_store.clients().process(client)->state, static_cast<unsigned>(place));
  for (int device = 0; device < tenant_store.device_count(); ++device) {
    regatta_residency_state& page = *tenant_store.clients().residency(client, device);
    store(page.order, page.order + 1);
    os::futex_wake_all(&page.order);
  }
}

}  // namespace

CheckpointManager::CheckpointManager(CheckpointManager&& other) noexcept
    : options_(std::move(other.options_)),
      clients_(std::exchange(other.clients_, {})),
      ending_(std::exchange(other.ending_, {})),
      probe_(other.probe_),
      probe_pid_(std::exchange(other.probe_pid_, 0)),
      probe_ends_ns_(other.probe_ends_ns_),
      probe_next_ns_(other.probe_next_ns_),
      is_available_(other.is_available_) {}

CheckpointManager::~CheckpointManager() {
  end_helper(probe_pid_);
  for (const auto& [client, one] : clients_)
    end_helper(one.helper);
}

void CheckpointManager::end_helper(pid_t helper) {
  if (helper <= 0) return;
  ::kill(helper, SIGKILL);
  if (!has_gone(helper)) ending_.push_back(helper);
}

regatta_process_state CheckpointManager::place(const TenantStore& tenant_store, int client) {
  const regatta_process* const page = tenant_store.clients().process(client);
  return page == nullptr ? REGATTA_PROCESS_RUNNING
                         : static_cast<regatta_process_state>(load(page->state));
}

bool CheckpointManager::may_leave(const TenantStore& tenant_store, int client, int device) const {
  const regatta_process* const page = tenant_store.clients().process(client);
  if (!is_available_ || page == nullptr || load(page->pinned) != 0 || load(page->watches) == 0)
    return false;
  for (int other = 0; other < tenant_store.device_count(); ++other)
    if (other != device && (tenant_store.leases().leased(client, other) != 0 ||
                            tenant_store.swappable().bytes(client, other) != 0))
      return false;
  const auto known = clients_.find(client);
  return known == clients_.end() || !known->second.has_failed;
}

// A client that an earlier daemon was moving continues in the same direction.
CheckpointManager::ClientState& CheckpointManager::known(const TenantStore& tenant_store,
                                                         int client) {
  const auto found = clients_.find(client);
  if (found != clients_.end()) return found->second;
  const regatta_process_state now = place(tenant_store, client);
  return clients_[client] = {.is_wanted_here = now == REGATTA_PROCESS_RUNNING ||
                                               now == REGATTA_PROCESS_RESTORING};
}

bool CheckpointManager::is_wanted_here(const TenantStore& tenant_store, int client) const {
  const auto found = clients_.find(client);
  if (found != clients_.end()) return found->second.is_wanted_here;
  const regatta_process_state now = place(tenant_store, client);
  return now == REGATTA_PROCESS_RUNNING || now == REGATTA_PROCESS_RESTORING;
}

bool CheckpointManager::is_stuck(const TenantStore& tenant_store, int client) const {
  const auto found = clients_.find(client);
  return found != clients_.end() && found->second.has_failed &&
         place(tenant_store, client) != REGATTA_PROCESS_CHECKPOINTED;
}

bool CheckpointManager::is_lost(int client) const {
  const auto found = clients_.find(client);
  return found != clients_.end() && found->second.has_failed && found->second.away_ns != 0;
}

std::uint64_t CheckpointManager::away_since_ns(int client) const {
  const auto found = clients_.find(client);
  return found == clients_.end() ? 0 : found->second.away_ns;
}

void CheckpointManager::notice(const TenantStore& tenant_store, int client) {
  if (place(tenant_store, client) != REGATTA_PROCESS_RUNNING) known(tenant_store, client);
}

void CheckpointManager::set_target(const TenantStore& tenant_store, int client, bool is_resident) {
  if (tenant_store.clients().process(client) == nullptr) return;
  if (is_resident && !clients_.contains(client) &&
      place(tenant_store, client) == REGATTA_PROCESS_RUNNING)
    return;
  ClientState& one = known(tenant_store, client);
  if (!is_resident && one.has_failed) return;
  one.is_wanted_here = is_resident;
}

void CheckpointManager::forget(int client) {
  const auto found = clients_.find(client);
  if (found == clients_.end()) return;
  end_helper(found->second.helper);
  if (found->second.ending > 0) ending_.push_back(found->second.ending);
  clients_.erase(found);
}

// The driver is probed for the calls once, when tenants may have over-commit.
std::uint64_t CheckpointManager::probe(std::uint64_t now) {
  if (is_decided()) return TimerFd::kNever;
  if (probe_ == Probe::kNotBegun) {
    if (now < probe_next_ns_) return probe_next_ns_;
    probe_pid_ = start_checkpoint(options_.library, CheckpointAction::kProbe, 0, {});
    if (probe_pid_ < 0) {
      probe_pid_ = 0;
      return probe_next_ns_ = now + kAgainNs;
    }
    probe_ = Probe::kUnderWay;
    probe_ends_ns_ = now + static_cast<std::uint64_t>(options_.timeout.value * 1e9);
  }
  const auto outcome = outcome_of(probe_pid_);
  if (!outcome && now < probe_ends_ns_) return now + kCheckpointPollNs;
  if (!outcome) {
    os::log_warning("gpu daemon: " + options_.library +
                    " does not say whether processes can leave their GPU; none will");
    end_helper(probe_pid_);
  } else if (*outcome != CheckpointOutcome::kDone && *outcome != CheckpointOutcome::kMissing) {
    os::log_warning(
        "gpu daemon: the process that asks " + options_.library +
        " whether processes can leave their GPU failed, as it does before Linux 5.9; none "
        "will");
  }
  probe_pid_ = 0;
  probe_ = Probe::kDone;
  is_available_ = outcome == CheckpointOutcome::kDone;
  return TimerFd::kNever;
}

void CheckpointManager::begin(TenantStore& tenant_store, int client, ClientState& one,
                              std::uint64_t now) {
  const ClientRecord& record = tenant_store.state().clients[client];
  double bytes = 0;
  for (int device = 0; device < tenant_store.device_count(); ++device)
    bytes += static_cast<double>(tenant_store.leases().leased(client, device));
  const CheckpointAction action =
      one.is_wanted_here ? CheckpointAction::kIn : CheckpointAction::kOut;
  const regatta_process_state before = place(tenant_store, client);
  // Published first, so that no reader takes the process for staying.
  put(tenant_store, client,
      one.is_wanted_here ? REGATTA_PROCESS_RESTORING : REGATTA_PROCESS_CHECKPOINTING);
  one.helper = start_checkpoint(options_.library, action, record.pid, options_.lock_time);
  if (one.helper < 0) {
    one.helper = 0;
    one.next_ns = now + kAgainNs;
    return put(tenant_store, client, before);
  }
  one.ends_ns =
      now + static_cast<std::uint64_t>((options_.timeout.value + bytes / kSlowestLink) * 1e9);
}

void CheckpointManager::end(TenantStore& tenant_store, int client, ClientState& one,
                            CheckpointOutcome outcome, std::uint64_t now) {
  one.helper = 0;
  const bool comes = place(tenant_store, client) == REGATTA_PROCESS_RESTORING;
  regatta_process_state is = REGATTA_PROCESS_RUNNING;
  if (outcome == CheckpointOutcome::kLater) {
    one.next_ns = now + kAgainNs;
  } else if (outcome == CheckpointOutcome::kDone) {
    is = comes ? REGATTA_PROCESS_RUNNING : REGATTA_PROCESS_CHECKPOINTED;
  } else {
    is = fail(tenant_store, client, one, outcome);
    one.next_ns = now + kStuckNs;
  }
  one.away_ns = is == REGATTA_PROCESS_CHECKPOINTED ? now : 0;
  put(tenant_store, client, is);
}

// Returns the state after a failure. Memory that may be on a device counts as resident.
regatta_process_state CheckpointManager::fail(const TenantStore& tenant_store, int client,
                                              ClientState& one, CheckpointOutcome outcome) {
  const bool comes = place(tenant_store, client) == REGATTA_PROCESS_RESTORING;
  const bool is_away =
      comes && (outcome == CheckpointOutcome::kStillAway || outcome == CheckpointOutcome::kMissing);
  const bool is_new = !std::exchange(one.has_failed, true) || is_away;
  one.is_wanted_here = true;
  const ClientRecord& record = tenant_store.state().clients[client];
  if (is_new && ::kill(record.pid, 0) == 0) {  // else it has ended
    os::log_warning(fmt::format("gpu daemon: tenant {}: process {}: the driver {}",
                                tenant_store.tenants().name(static_cast<int>(record.tenant)),
                                record.pid, what_failed(outcome, comes)));
  }
  if (is_away) return REGATTA_PROCESS_CHECKPOINTED;
  const bool is_stuck =
      outcome == CheckpointOutcome::kLocked || outcome == CheckpointOutcome::kUnknown;
  return is_stuck ? REGATTA_PROCESS_RESTORING : REGATTA_PROCESS_RUNNING;
}

std::uint64_t CheckpointManager::step(TenantStore& tenant_store, std::uint64_t now,
                                      const MayBegin& may_begin, bool& is_changed) {
  const bool was_available = is_available_;
  std::uint64_t wake = probe(now);
  is_changed = is_available_ != was_available;
  std::erase_if(ending_, has_gone);
  for (auto at = clients_.begin(); at != clients_.end();) {
    const int client = at->first;
    ClientState& one = (at++)->second;
    if (tenant_store.clients().process(client) == nullptr) continue;
    if (one.ending > 0) {
      if (!has_gone(one.ending)) {
        wake = std::min(wake, now + kAgainNs);
        continue;
      }
      one.ending = 0;
    }
    if (one.helper > 0) {
      auto outcome = outcome_of(one.helper);
      wake = std::min(wake, now + kCheckpointPollNs);
      if (!outcome && now < one.ends_ns) continue;
      if (!outcome) {
        one.ending = std::exchange(one.helper, 0);
        ::kill(one.ending, SIGKILL);
        // It is unknown how far it came, so it is restored from any state.
        outcome = CheckpointOutcome::kUnknown;
      }
      end(tenant_store, client, one, *outcome, now);
      is_changed = true;
    }
    const regatta_process_state is = place(tenant_store, client);
    const bool is_settled =
        is == (one.is_wanted_here ? REGATTA_PROCESS_RUNNING : REGATTA_PROCESS_CHECKPOINTED);
    if (is_settled && is == REGATTA_PROCESS_CHECKPOINTED && one.away_ns == 0) one.away_ns = now;
    if (one.ending > 0) wake = std::min(wake, now + kAgainNs);
    if (is_settled && is == REGATTA_PROCESS_RUNNING && !one.has_failed) {
      clients_.erase(client);
      continue;
    }
    if (is_settled || (one.has_failed && is == REGATTA_PROCESS_CHECKPOINTED) || one.ending > 0)
      continue;
    wake = std::min(wake, std::max(now + kCheckpointPollNs, one.next_ns));
    if (now < one.next_ns || !may_begin(client, one.is_wanted_here)) continue;
    begin(tenant_store, client, one, now);
  }
  return wake;
}

}  // namespace regatta::sharing
