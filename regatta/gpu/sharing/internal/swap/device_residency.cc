#include "regatta/gpu/sharing/internal/swap/device_residency.h"

#include <algorithm>

#include <pthread.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kNsPerMs = 1'000'000;
// A process without calls for this time is idle.
constexpr std::uint64_t kIdleNs = 40 * kNsPerMs;
constexpr std::uint64_t kPollNs = 10 * kNsPerMs;
constexpr std::uint64_t kIdlePollNs = 20 * kNsPerMs;
// Notifications are repeated, because another daemon may have started.
constexpr std::uint64_t kNotifyWaitingNs = 100 * kNsPerMs;
constexpr std::uint64_t kNotifyNs = 1000 * kNsPerMs;
// The shortest time between notifications while memory moves.
constexpr std::uint64_t kProgressNs = 2 * kNsPerMs;

}  // namespace

DeviceResidency::DeviceResidency(Client& client, int device, SwapDevice& swap,
                                 std::uint64_t chunk_bytes, const std::atomic<int>* calls)
    : client_(client),
      device_(device),
      swap_(swap),
      calls_(calls),
      page_(client, device),
      swappable_(swap, chunk_bytes) {}

DeviceResidency::~DeviceResidency() {
  stops_ = true;
  page_.wake_waiter();
  if (worker_.joinable()) worker_.join();
}

void DeviceResidency::start_worker() {
  const MutexLock lock(start_mutex_);
  if (worker_.joinable()) return;
  worker_ = os::signal_masked_thread([this] { run_worker(); });
}

bool DeviceResidency::try_enter() {
  if (!gate_.enter()) {
    gate_.leave();
    return false;
  }
  is_touched_.store(true, std::memory_order_relaxed);
  return true;
}

void DeviceResidency::watch() {
  start_worker();
  __atomic_store_n(&client_.pages().process().watches, 1U, __ATOMIC_SEQ_CST);
}

bool DeviceResidency::is_all_resident() const {
  const SwappableMemory::Totals& totals = swappable_.totals();
  return totals.resident == totals.all && totals.resident <= page_.granted();
}

void DeviceResidency::open_if_resident() {
  if (!gate_.is_open() && is_all_resident()) gate_.open();
}

void DeviceResidency::wait_until_resident() {
  while (client_.is_joined_process()) {  // the driver does not serve a child of fork()
    gate_.begin_wait();
    page_.set_activity(REGATTA_WAITING);
    if (gate_.end_wait(Seconds{0.1})) return;
  }
}

void DeviceResidency::writes(std::uint64_t address) {
  const MutexLock lock(mutex_);
  swappable_.wrote(address);
}

Result<std::uint64_t> DeviceResidency::allocate(Home home, std::uint64_t bytes) {
  const MutexLock lock(mutex_);
  start_worker();
  const std::uint64_t total = swappable_.totals().all + SwappableMemory::taken_by(bytes);
  REGATTA_TRY_DO(client_.lease_swappable(device_, total));
  const auto address = swappable_.allocate(home, bytes);
  if (!address) {
    lease_no_more();
    return Error{Code::kExhausted, "the driver has no addresses left for device memory"};
  }
  // There mostly is room, and the daemon granted it with its reply. Otherwise the next call waits.
  gate_.close();
  const std::uint64_t granted = page_.granted();
  if (granted >= swappable_.totals().all) move_in(granted);
  page_.publish(swappable_.totals());
  open_if_resident();
  return *address;
}

// The daemon may withdraw a grant at any time. This process publishes each chunk first and then
// checks the grant; the daemon does it the other way round, and grants to others only what nobody
// has published. Returns the bytes for which the driver had no room.
std::uint64_t DeviceResidency::move_in(std::uint64_t granted) {
  bool is_permitted = true;
  const auto publish = [this](const SwappableMemory::Totals& totals) { page_.publish(totals); };
  const bool is_done =
      swappable_.move_in(granted, publish, [&](const SwappableMemory::Totals& totals) {
        page_.publish(totals);
        is_permitted = totals.resident <= page_.granted();
        return is_permitted;
      });
  const SwappableMemory::Totals& totals = swappable_.totals();
  const std::uint64_t may = std::min(totals.all, granted);
  return is_done || !is_permitted ? 0 : may - std::min(may, totals.resident);
}

// No work uses it any more.
void DeviceResidency::release(std::uint64_t address) {
  swappable_.free(address);
  page_.publish(swappable_.totals());
  open_if_resident();
}

// Returns to the daemon what exceeds the allocations.
void DeviceResidency::lease_no_more() {
  static_cast<void>(client_.lease_swappable(device_, swappable_.totals().all).has_value());
}

bool DeviceResidency::free(std::uint64_t address) {
  const auto range = find(address);
  if (!range || range->address != address) return false;
  swap_.drain(range->home);
  const MutexLock lock(mutex_);
  release(address);
  lease_no_more();
  return true;
}

void DeviceResidency::free_all(Home home) {
  swap_.drain(home);
  const MutexLock lock(mutex_);
  const auto ranges = swappable_.of_home(home);
  for (const SwappableMemory::Range& range : ranges)
    release(range.address);
  if (!ranges.empty()) lease_no_more();
}

std::optional<SwappableMemory::Range> DeviceResidency::find(std::uint64_t address) const {
  const MutexLock lock(mutex_);
  return swappable_.find(address);
}

SwappableMemory::Totals DeviceResidency::totals() const {
  const MutexLock lock(mutex_);
  return swappable_.totals();
}

// Moves memory out until `granted` bytes are left: no call begins, the calls in progress end, then
// it moves. Where the work cannot be waited for, as during a capture, calls continue and the worker
// tries again.
void DeviceResidency::swap_out(std::uint64_t granted) {
  gate_.close();
  while (gate_.has_users() && !stops_ && page_.granted() <= granted)
    os::sleep_for(Seconds{50e-6});
  const MutexLock lock(mutex_);
  open_if_resident();
  if (gate_.is_open() || gate_.has_users() || swappable_.totals().resident <= page_.granted())
    return;
  bool is_drained = true;
  for (const Home home : swappable_.homes())
    is_drained = swap_.drain(home) && is_drained;
  if (is_drained) {
    if (has_launched_.exchange(false)) swappable_.wrote_all();
    swappable_.move_out(granted, [this](const SwappableMemory::Totals& totals) {
      page_.publish(totals);
      page_.notify(kProgressNs);
    });
  } else if (swappable_.totals().resident == swappable_.totals().all) {
    gate_.open();
  }
  page_.publish(swappable_.totals());
}

void DeviceResidency::apply_grant() {
  const std::uint64_t granted = page_.granted();
  const SwappableMemory::Totals before = totals();
  std::uint64_t lacking = 0;
  if (before.resident > granted) {
    swap_out(granted);
  } else if (before.resident < std::min(before.all, granted)) {
    const MutexLock lock(mutex_);
    lacking = move_in(granted);
    page_.publish(swappable_.totals());
    open_if_resident();
  } else if (!gate_.is_open()) {
    const MutexLock lock(mutex_);
    open_if_resident();
  }
  page_.set_lacking(lacking);
  if (totals().resident != before.resident) page_.notify();
}

// Derived from the calls of the process and from its launch gate.
void DeviceResidency::report_activity() {
  const std::uint64_t now = os::monotonic_ns();
  const unsigned work = __atomic_load_n(&client_.pages().work(device_).word, __ATOMIC_ACQUIRE);
  const bool is_calling = calls_ != nullptr && *calls_ != 0;
  if (is_touched_.exchange(false) || gate_.has_users() || is_calling ||
      regatta_work_activity(work) != REGATTA_IDLE)
    worked_ns_ = now;
  page_.notify(gate_.has_waiting() ? kNotifyWaitingNs : kNotifyNs);
  // A call that waits in the driver of a checkpointed process waits for memory, too.
  if (gate_.has_waiting() || (is_calling && !client_.pages().is_on_devices()))
    return page_.set_activity(REGATTA_WAITING);
  const bool is_working = worked_ns_ != 0 && now - worked_ns_ < kIdleNs;
  page_.set_activity(is_working ? REGATTA_WORKING : REGATTA_IDLE);
}

void DeviceResidency::run_worker() {
  ::pthread_setname_np(::pthread_self(), "regatta-swap");
  while (!stops_) {
    const unsigned order = page_.order();
    // While a checkpoint is in progress the driver would block this thread, too.
    if (client_.pages().is_on_devices()) apply_grant();
    report_activity();
    page_.wait_for_order(order, page_.is_idle() ? kIdlePollNs : kPollNs);
  }
}

}  // namespace regatta::sharing
