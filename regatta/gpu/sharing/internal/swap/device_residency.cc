#include "regatta/gpu/sharing/internal/swap/device_residency.h"

#include <algorithm>
#include <chrono>

#include <pthread.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/memory.h"
#include "regatta/base/os/process.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
// A process that calls nothing for so long is idle.
constexpr std::uint64_t kIdleNs = 40 * kMs;
constexpr std::uint64_t kSwapPollNs = 10 * kMs;
constexpr std::uint64_t kIdleLookNs = 20 * kMs;
// The daemon is told again: it may be another one.
constexpr std::uint64_t kTellAgainNs = 100 * kMs;
constexpr std::uint64_t kTellAnywayNs = 1000 * kMs;
// On the way the daemon is told at most so often.
constexpr std::uint64_t kProgressNs = 2 * kMs;

template <typename T>
void store(T& where, T value) {
  __atomic_store_n(&where, value, __ATOMIC_SEQ_CST);
}

std::uint64_t may_of(const regatta_residency_state& page) {
  return __atomic_load_n(&page.granted, __ATOMIC_SEQ_CST);
}

}  // namespace

DeviceResidency::DeviceResidency(Client& client, int device, SwapDevice& swap,
                                 std::uint64_t chunk_bytes, const std::atomic<int>* calls)
    : client_(client),
      device_(device),
      swap_(swap),
      calls_(calls),
      page_(client.residency(device)),
      swappable_(swap, chunk_bytes) {}

DeviceResidency::~DeviceResidency() {
  stops_ = true;
  os::futex_wake_one(&page_.order);
  if (worker_.joinable()) worker_.join();
}

void DeviceResidency::start_worker() {
  const std::scoped_lock lock(start_mutex_);
  if (worker_.joinable()) return;
  worker_ = os::signal_masked_thread([this] { run_worker(); });
}

bool DeviceResidency::try_enter() {
  users_.fetch_add(1);
  if (!is_open_.load()) {
    users_.fetch_sub(1);
    return false;
  }
  is_touched_.store(true, std::memory_order_relaxed);
  return true;
}

void DeviceResidency::watch() {
  start_worker();
  store(client_.process().watches, 1U);
}

void DeviceResidency::publish(const SwappableMemory::Totals& totals) {
  store(page_.moved_in, static_cast<unsigned long long>(totals.moved_in));
  store(page_.moved_out, static_cast<unsigned long long>(totals.moved_out));
  store(page_.away, static_cast<unsigned long long>(totals.all - totals.resident));
  store(page_.resident, static_cast<unsigned long long>(totals.resident));
}

void DeviceResidency::say(regatta_activity doing) {
  const auto value = static_cast<unsigned>(doing);
  if (__atomic_exchange_n(&page_.doing, value, __ATOMIC_SEQ_CST) == value) return;
  static_cast<void>(client_.notify_residency_changed(device_).has_value());
}

// Under mutex_.
bool DeviceResidency::is_all_there() const {
  const SwappableMemory::Totals& totals = swappable_.totals();
  return totals.resident == totals.all && totals.resident <= may_of(page_);
}

// Under mutex_.
void DeviceResidency::open_if_in() {
  if (is_open_ || !is_all_there()) return;
  const std::scoped_lock lock(wait_mutex_);
  is_open_ = true;
  opened_.notify_all();
}

void DeviceResidency::wait_until_in() {
  while (client_.is_joined_process()) {  // a child of fork() is not served by the driver
    users_.fetch_sub(1);
    ++waiting_;
    say(REGATTA_WAITING);
    {
      Lock lock(wait_mutex_);
      opened_.wait_for(lock, std::chrono::milliseconds(100), [&] { return is_open_.load(); });
    }
    users_.fetch_add(1);
    --waiting_;
    if (is_open_) return;
  }
}

void DeviceResidency::writes(std::uint64_t address) {
  const Lock lock(mutex_);
  swappable_.wrote(address);
}

Result<std::uint64_t> DeviceResidency::allocate(Home home, std::uint64_t bytes) {
  const std::uint64_t taken = SwappableMemory::taken_by(bytes);
  const Lock lock(mutex_);
  start_worker();
  REGATTA_TRY_DO(client_.lease_swappable(device_, swappable_.totals().all + taken));
  const auto address = swappable_.allocate(home, bytes);
  if (!address) {
    static_cast<void>(client_.lease_swappable(device_, swappable_.totals().all).has_value());
    return Error{Code::kExhausted, "the driver has no addresses left for device memory"};
  }
  // Mostly there is room, and the daemon said so with its answer. Else the next call waits for it.
  is_open_ = false;
  const std::uint64_t may = may_of(page_);
  if (may >= swappable_.totals().all) move_in(may);
  publish(swappable_.totals());
  open_if_in();
  return *address;
}

// Under mutex_. The daemon may take back what it allowed at any time: what comes in is said first,
// then it is looked whether it still may; the daemon does it the other way round, and gives to
// others only what nobody said.
void DeviceResidency::move_in(std::uint64_t may) {
  const auto say_all = [this](const SwappableMemory::Totals& totals) { publish(totals); };
  swappable_.move_in(may, say_all, [this](const SwappableMemory::Totals& totals) {
    publish(totals);
    return totals.resident <= may_of(page_);
  });
}

// Under mutex_, when no work uses it.
void DeviceResidency::release(std::uint64_t address) {
  swappable_.free(address);
  publish(swappable_.totals());
  open_if_in();
}

bool DeviceResidency::free(std::uint64_t address) {
  const auto range = find(address);
  if (!range || range->address != address) return false;
  swap_.drain(range->home);
  const Lock lock(mutex_);
  release(address);
  static_cast<void>(client_.lease_swappable(device_, swappable_.totals().all).has_value());
  return true;
}

void DeviceResidency::free_all(Home home) {
  swap_.drain(home);
  const Lock lock(mutex_);
  const auto ranges = swappable_.of_home(home);
  for (const SwappableMemory::Range& range : ranges)
    release(range.address);
  if (!ranges.empty())
    static_cast<void>(client_.lease_swappable(device_, swappable_.totals().all).has_value());
}

std::optional<SwappableMemory::Range> DeviceResidency::find(std::uint64_t address) const {
  const Lock lock(mutex_);
  return swappable_.find(address);
}

SwappableMemory::Totals DeviceResidency::totals() const {
  const Lock lock(mutex_);
  return swappable_.totals();
}

// Takes away what is too much: nothing new begins, what is under way ends, then it goes. Where
// nobody can wait for the work, as while it is captured, calls go on and it is tried again.
void DeviceResidency::give(std::uint64_t may) {
  is_open_ = false;
  while (users_ != 0 && !stops_ && may_of(page_) <= may)
    os::sleep_for(Seconds{50e-6});
  const Lock lock(mutex_);
  open_if_in();
  if (is_open_ || users_ != 0 || swappable_.totals().resident <= may_of(page_)) return;
  bool is_drained = true;
  for (const Home home : swappable_.homes())
    is_drained = swap_.drain(home) && is_drained;
  if (is_drained) {
    if (has_launched_.exchange(false)) swappable_.wrote_all();
    swappable_.move_out(may, [this](const SwappableMemory::Totals& totals) {
      publish(totals);
      if (os::monotonic_ns() - told_ns_ < kProgressNs) return;
      told_ns_ = os::monotonic_ns();
      static_cast<void>(client_.notify_residency_changed(device_).has_value());
    });
  } else if (swappable_.totals().resident == swappable_.totals().all) {
    const std::scoped_lock wait(wait_mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  publish(swappable_.totals());
}

void DeviceResidency::apply_grant() {
  const std::uint64_t may = may_of(page_);
  SwappableMemory::Totals before = totals();
  if (before.resident > may) {
    give(may);
  } else if (before.resident < std::min(before.all, may)) {
    const Lock lock(mutex_);
    move_in(may);
    publish(swappable_.totals());
    open_if_in();
  } else if (!is_open_) {
    const Lock lock(mutex_);
    open_if_in();
  }
  const SwappableMemory::Totals after = totals();
  if (after.resident == before.resident) return;
  told_ns_ = os::monotonic_ns();
  static_cast<void>(client_.notify_residency_changed(device_).has_value());
}

// What the process does, by its calls and by its gate.
void DeviceResidency::say_what_is_done() {
  const std::uint64_t now = os::monotonic_ns();
  const unsigned work = __atomic_load_n(&client_.work(device_).word, __ATOMIC_ACQUIRE);
  const bool is_calling = calls_ != nullptr && *calls_ != 0;
  if (is_touched_.exchange(false) || users_ != 0 || is_calling ||
      regatta_work_activity(work) != REGATTA_IDLE)
    worked_ns_ = now;
  if (now - told_ns_ >= (waiting_ != 0 ? kTellAgainNs : kTellAnywayNs)) {
    told_ns_ = now;
    static_cast<void>(client_.notify_residency_changed(device_).has_value());
  }
  // A call that waits in the driver, because the process is away, waits for its memory, too.
  if (waiting_ != 0 || (is_calling && !client_.is_on_devices())) return say(REGATTA_WAITING);
  say(worked_ns_ != 0 && now - worked_ns_ < kIdleNs ? REGATTA_WORKING : REGATTA_IDLE);
}

void DeviceResidency::run_worker() {
  ::pthread_setname_np(::pthread_self(), "regatta-swap");
  while (!stops_) {
    const unsigned order = __atomic_load_n(&page_.order, __ATOMIC_SEQ_CST);
    if (client_.is_on_devices()) apply_grant();  // else the driver would keep this thread, too
    say_what_is_done();
    const bool is_idle =
        __atomic_load_n(&page_.doing, __ATOMIC_SEQ_CST) == static_cast<unsigned>(REGATTA_IDLE);
    os::futex_wait(&page_.order, order, is_idle ? kIdleLookNs : kSwapPollNs);
  }
}

}  // namespace regatta::sharing
