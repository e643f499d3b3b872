#include "regatta/gpu/sharing/internal/swap/residence.h"

#include <algorithm>
#include <chrono>

#include <pthread.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/futex.h"
#include "regatta/base/os/quiet_thread.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
// A process that calls nothing for so long is idle.
constexpr std::uint64_t kIdleNs = 40 * kMs;
constexpr std::uint64_t kLookNs = 10 * kMs;
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

std::uint64_t may_of(const regatta_residence& page) {
  return __atomic_load_n(&page.may, __ATOMIC_SEQ_CST);
}

}  // namespace

Residence::Residence(Client& client, int device, SwapDevice& swap, std::uint64_t chunk_bytes,
                     const std::atomic<int>* calls)
    : client_(client),
      device_(device),
      swap_(swap),
      calls_(calls),
      page_(client.residence(device)),
      movable_(swap, chunk_bytes) {}

Residence::~Residence() {
  stops_ = true;
  os::futex_wake_one(&page_.order);
  if (agent_.joinable()) agent_.join();
}

void Residence::start_agent() {
  const std::scoped_lock lock(start_mutex_);
  if (agent_.joinable()) return;
  agent_ = os::quiet_thread([this] { run_agent(); });
}

bool Residence::try_enter() {
  users_.fetch_add(1);
  if (!is_open_.load()) {
    users_.fetch_sub(1);
    return false;
  }
  is_touched_.store(true, std::memory_order_relaxed);
  return true;
}

void Residence::watch() {
  start_agent();
  store(client_.process().watches, 1U);
}

void Residence::publish(const Movable::Totals& totals) {
  store(page_.moved_in, static_cast<unsigned long long>(totals.moved_in));
  store(page_.moved_out, static_cast<unsigned long long>(totals.moved_out));
  store(page_.away, static_cast<unsigned long long>(totals.all - totals.resident));
  store(page_.resident, static_cast<unsigned long long>(totals.resident));
}

void Residence::say(regatta_doing doing) {
  const auto value = static_cast<unsigned>(doing);
  if (__atomic_exchange_n(&page_.doing, value, __ATOMIC_SEQ_CST) == value) return;
  static_cast<void>(client_.tell_moved(device_).has_value());
}

// Under mutex_.
bool Residence::is_all_there() const {
  const Movable::Totals& totals = movable_.totals();
  return totals.resident == totals.all && totals.resident <= may_of(page_);
}

// Under mutex_.
void Residence::open_if_in() {
  if (is_open_ || !is_all_there()) return;
  const std::scoped_lock lock(wait_mutex_);
  is_open_ = true;
  opened_.notify_all();
}

void Residence::wait_until_in() {
  while (client_.is_here()) {  // a child of fork() is not served by the driver
    users_.fetch_sub(1);
    ++waiting_;
    say(REGATTA_WANTS);
    {
      Lock lock(wait_mutex_);
      opened_.wait_for(lock, std::chrono::milliseconds(100), [&] { return is_open_.load(); });
    }
    users_.fetch_add(1);
    --waiting_;
    if (is_open_) return;
  }
}

void Residence::writes(std::uint64_t address) {
  const Lock lock(mutex_);
  movable_.wrote(address);
}

Result<std::uint64_t> Residence::allocate(Home home, std::uint64_t bytes) {
  const std::uint64_t taken = Movable::taken_by(bytes);
  const Lock lock(mutex_);
  start_agent();
  REGATTA_TRY_DO(client_.lease_movable(device_, movable_.totals().all + taken));
  const auto address = movable_.allocate(home, bytes);
  if (!address) {
    static_cast<void>(client_.lease_movable(device_, movable_.totals().all).has_value());
    return Error{Code::kExhausted, "the driver has no addresses left for device memory"};
  }
  // Mostly there is room, and the daemon said so with its answer. Else the next call waits for it.
  is_open_ = false;
  const std::uint64_t may = may_of(page_);
  if (may >= movable_.totals().all) move_in(may);
  publish(movable_.totals());
  open_if_in();
  return *address;
}

// Under mutex_. The daemon may take back what it allowed at any time: what comes in is said first,
// then it is looked whether it still may; the daemon does it the other way round, and gives to
// others only what nobody said.
void Residence::move_in(std::uint64_t may) {
  const auto say_all = [this](const Movable::Totals& totals) { publish(totals); };
  movable_.move_in(may, say_all, [this](const Movable::Totals& totals) {
    publish(totals);
    return totals.resident <= may_of(page_);
  });
}

// Under mutex_, when no work uses it.
void Residence::release(std::uint64_t address) {
  movable_.free(address);
  publish(movable_.totals());
  open_if_in();
}

bool Residence::free(std::uint64_t address) {
  const auto range = find(address);
  if (!range || range->address != address) return false;
  swap_.drain(range->home);
  const Lock lock(mutex_);
  release(address);
  static_cast<void>(client_.lease_movable(device_, movable_.totals().all).has_value());
  return true;
}

void Residence::free_all(Home home) {
  swap_.drain(home);
  const Lock lock(mutex_);
  const auto ranges = movable_.of_home(home);
  for (const Movable::Range& range : ranges)
    release(range.address);
  if (!ranges.empty())
    static_cast<void>(client_.lease_movable(device_, movable_.totals().all).has_value());
}

std::optional<Movable::Range> Residence::find(std::uint64_t address) const {
  const Lock lock(mutex_);
  return movable_.find(address);
}

Movable::Totals Residence::totals() const {
  const Lock lock(mutex_);
  return movable_.totals();
}

// Takes away what is too much: nothing new begins, what is under way ends, then it goes. Where
// nobody can wait for the work, as while it is captured, calls go on and it is tried again.
void Residence::give(std::uint64_t may) {
  is_open_ = false;
  while (users_ != 0 && !stops_ && may_of(page_) <= may)
    os::sleep_for(Seconds{50e-6});
  const Lock lock(mutex_);
  open_if_in();
  if (is_open_ || users_ != 0 || movable_.totals().resident <= may_of(page_)) return;
  bool is_drained = true;
  for (const Home home : movable_.homes())
    is_drained = swap_.drain(home) && is_drained;
  if (is_drained) {
    if (has_launched_.exchange(false)) movable_.wrote_all();
    movable_.move_out(may, [this](const Movable::Totals& totals) {
      publish(totals);
      if (os::monotonic_ns() - told_ns_ < kProgressNs) return;
      told_ns_ = os::monotonic_ns();
      static_cast<void>(client_.tell_moved(device_).has_value());
    });
  } else if (movable_.totals().resident == movable_.totals().all) {
    const std::scoped_lock wait(wait_mutex_);
    is_open_ = true;
    opened_.notify_all();
  }
  publish(movable_.totals());
}

void Residence::obey() {
  const std::uint64_t may = may_of(page_);
  Movable::Totals before = totals();
  if (before.resident > may) {
    give(may);
  } else if (before.resident < std::min(before.all, may)) {
    const Lock lock(mutex_);
    move_in(may);
    publish(movable_.totals());
    open_if_in();
  } else if (!is_open_) {
    const Lock lock(mutex_);
    open_if_in();
  }
  const Movable::Totals after = totals();
  if (after.resident == before.resident) return;
  told_ns_ = os::monotonic_ns();
  static_cast<void>(client_.tell_moved(device_).has_value());
}

// What the process does, by its calls and by its gate.
void Residence::say_what_is_done() {
  const std::uint64_t now = os::monotonic_ns();
  const unsigned work = __atomic_load_n(&client_.work(device_).word, __ATOMIC_ACQUIRE);
  const bool is_calling = calls_ != nullptr && *calls_ != 0;
  if (is_touched_.exchange(false) || users_ != 0 || is_calling ||
      regatta_work_doing(work) != REGATTA_IDLE)
    worked_ns_ = now;
  if (now - told_ns_ >= (waiting_ != 0 ? kTellAgainNs : kTellAnywayNs)) {
    told_ns_ = now;
    static_cast<void>(client_.tell_moved(device_).has_value());
  }
  // A call that waits in the driver, because the process is away, waits for its memory, too.
  if (waiting_ != 0 || (is_calling && !client_.is_on_devices())) return say(REGATTA_WANTS);
  say(worked_ns_ != 0 && now - worked_ns_ < kIdleNs ? REGATTA_WORKS : REGATTA_IDLE);
}

void Residence::run_agent() {
  ::pthread_setname_np(::pthread_self(), "regatta-swap");
  while (!stops_) {
    const unsigned order = __atomic_load_n(&page_.order, __ATOMIC_SEQ_CST);
    if (client_.is_on_devices()) obey();  // else the driver would keep this thread, too
    say_what_is_done();
    const bool is_idle =
        __atomic_load_n(&page_.doing, __ATOMIC_SEQ_CST) == static_cast<unsigned>(REGATTA_IDLE);
    os::futex_wait(&page_.order, order, is_idle ? kIdleLookNs : kLookNs);
  }
}

}  // namespace regatta::sharing
