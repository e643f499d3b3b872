#include "regatta/gpu/sharing/internal/daemon/timekeeper.h"

#include <algorithm>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/futex.h"

namespace regatta::sharing {
namespace {

// When the client's work in flight ends; 0: not known.
std::uint64_t ends_of(const regatta_work& work, unsigned number) {
  if (__atomic_load_n(&work.ends_number, __ATOMIC_ACQUIRE) != number) return 0;
  return __atomic_load_n(&work.ends_ns, __ATOMIC_RELAXED);
}

// How long it took from the opening of the turn to the client's first launch in it.
void learn_delay(const regatta_work& work, Dispatch& dispatch) {
  const unsigned word = __atomic_load_n(&work.word, __ATOMIC_ACQUIRE);
  const std::uint64_t entered = __atomic_load_n(&work.entered_ns, __ATOMIC_RELAXED);
  if (regatta_work_number(word) == dispatch.turn_number() && entered > dispatch.opened_ns())
    dispatch.learn_delay(entered - dispatch.opened_ns());
}

// The word comes last: who sees it sees the rest.
void write_turn(regatta_turn& turn, const DispatchOrder& order) {
  store(turn.deadline_ns, static_cast<unsigned long long>(order.deadline_ns));
  store(turn.bound_ns, static_cast<unsigned long long>(order.bound_ns));
  if (order.kind == DispatchOrder::Kind::kChange) return;
  store(turn.word,
        regatta_turn_word(order.number, order.kind == DispatchOrder::Kind::kOpen ? 1 : 0));
  os::futex_wake_all(&turn.word);
}

}  // namespace

Timekeeper::Timekeeper(Alarm alarm, const DispatchOptions& options, int devices,
                       std::uint64_t hold_until_ns)
    : alarm_(std::move(alarm)),
      is_out_(static_cast<std::size_t>(devices)),
      rings_(kClientsMax),
      used_ns_(kClientsMax),
      hold_until_ns_(hold_until_ns) {
  for (int i = 0; i < devices; ++i)
    devices_.emplace_back(options, os::monotonic_ns());
}

Result<Timekeeper> Timekeeper::create(const Books& books, const DispatchOptions& options,
                                      std::uint64_t hold_ns) {
  REGATTA_TRY(alarm, Alarm::create());
  Timekeeper keeper(std::move(alarm), options, books.device_count(), os::monotonic_ns() + hold_ns);
  keeper.set_tenants(books);
  return keeper;
}

void Timekeeper::listen(const Books& books, int client, bool rings) {
  rings_[static_cast<std::size_t>(client)] = rings ? 1 : 0;
  for (int device = 0; device < books.device_count(); ++device) {
    const regatta_work* work = books.work(client, device);
    used_ns_[static_cast<std::size_t>(client)][static_cast<std::size_t>(device)] =
        work == nullptr ? 0 : __atomic_load_n(&work->used_ns, __ATOMIC_RELAXED);
  }
  look(books, static_cast<int>(books.state().clients[client].tenant));
}

void Timekeeper::look(const Books& books) {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (books.state().tenants[tenant].live != 0) look(books, tenant);
  }
}

void Timekeeper::look(const Books& books, int tenant) {
  const std::uint64_t now = os::monotonic_ns();
  for (int device = 0; device < books.device_count(); ++device)
    look(books, tenant, device, now);
}

void Timekeeper::look(const Books& books, int tenant, int device, std::uint64_t now) {
  Dispatch& dispatch = devices_[static_cast<std::size_t>(device)];
  TenantDoing doing;
  bool all_end = dispatch.open_tenant() == tenant;
  bool all_used_up = dispatch.open_tenant() == tenant;
  for (const int client : books.clients_of(tenant)) {
    const regatta_work* work = books.work(client, device);
    if (work == nullptr || rings_[static_cast<std::size_t>(client)] == 0) continue;
    const unsigned word = __atomic_load_n(&work->word, __ATOMIC_SEQ_CST);
    const regatta_doing what = regatta_work_doing(word);
    std::uint64_t& known =
        used_ns_[static_cast<std::size_t>(client)][static_cast<std::size_t>(device)];
    const std::uint64_t used = __atomic_load_n(&work->used_ns, __ATOMIC_RELAXED);
    if (used > known) doing.used_ns += used - known;
    known = used;
    if (what == REGATTA_WORKS) {
      doing.works = true;
      const std::uint64_t ends = ends_of(*work, dispatch.turn_number());
      all_end = all_end && ends != 0;
      doing.ends_ns = std::max(doing.ends_ns, ends);
      if (dispatch.open_tenant() == tenant) learn_delay(*work, dispatch);
    }
    if (what != REGATTA_WANTS) continue;
    doing.wants = true;
    all_used_up = all_used_up && regatta_work_number(word) == dispatch.turn_number();
  }
  if (!all_end) doing.ends_ns = 0;
  doing.is_used_up = doing.wants && all_used_up;
  if (is_out_[static_cast<std::size_t>(device)][static_cast<std::size_t>(tenant)]) {
    doing.is_out = true;
    doing.wants = false;
  }
  dispatch.see(tenant, doing, now);
}

void Timekeeper::set_tenants(const Books& books) {
  Dispatch::Tenants tenants{};
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    const TenantRecord& record = books.state().tenants[tenant];
    if (record.live == 0) continue;
    auto& one = tenants[static_cast<std::size_t>(tenant)];
    one.limits = books.share_request(tenant);
    one.is_high = (record.flags & kHighPriority) != 0;
  }
  for (std::size_t device = 0; device < devices_.size(); ++device) {
    Dispatch::Tenants here = tenants;
    for (std::size_t tenant = 0; tenant < here.size(); ++tenant)
      if (is_out_[device][tenant]) here[tenant].limits.present = 0;
    devices_[device].set_tenants(books.policy(), here, os::monotonic_ns());
  }
}

void Timekeeper::set_out(const Books& books, int tenant, int device, bool is_out) {
  bool& known = is_out_[static_cast<std::size_t>(device)][static_cast<std::size_t>(tenant)];
  if (known == is_out) return;
  known = is_out;
  set_tenants(books);
  look(books, tenant, device, os::monotonic_ns());
}

void Timekeeper::forget(int tenant) {
  for (auto& is_out : is_out_)
    is_out[static_cast<std::size_t>(tenant)] = false;
  for (Dispatch& dispatch : devices_)
    dispatch.forget(tenant, os::monotonic_ns());
}

void Timekeeper::acknowledge_timer() {
  const std::uint64_t due = alarm_.acknowledge();
  const std::uint64_t now = os::monotonic_ns();
  for (Dispatch& dispatch : devices_) {
    if (dispatch.wake_ns() == due && now > due) dispatch.learn_lateness(now - due);
  }
}

void Timekeeper::step(const Books& books) {
  std::uint64_t wake = hold_until_ns_;
  if (os::monotonic_ns() >= hold_until_ns_) {
    wake = Alarm::kNever;
    for (int device = 0; device < books.device_count(); ++device) {
      Dispatch& dispatch = devices_[static_cast<std::size_t>(device)];
      if (dispatch.open_tenant() >= 0 && os::monotonic_ns() >= dispatch.wake_ns())
        look(books, dispatch.open_tenant(), device, os::monotonic_ns());
      while (const auto order = dispatch.next_order(os::monotonic_ns())) {
        if (regatta_turn* turn = books.turn(order->tenant, device)) write_turn(*turn, *order);
        if (order->kind == DispatchOrder::Kind::kClose)
          look(books, order->tenant, device, os::monotonic_ns());
      }
      wake = std::min(wake, dispatch.wake_ns());
    }
  }
  alarm_.set(wake);
}

double Timekeeper::last_second(int tenant, int device) const {
  return 1e-9 *
         static_cast<double>(devices_[static_cast<std::size_t>(device)].history().last_second(
             tenant, os::monotonic_ns()));
}

double Timekeeper::seconds(int tenant, int device) const {
  return 1e-9 *
         static_cast<double>(devices_[static_cast<std::size_t>(device)].history().total(tenant));
}

}  // namespace regatta::sharing
