// Start and contexts. Their memory is unknown before the call: NVML reports the process's total,
// and the part that is not counted elsewhere is theirs and that of modules (exports_modules.cc).
#include "regatta/gpu/sharing/internal/hook/contexts.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/os/clock.h"
#include "regatta/gpu/sharing/internal/client/client.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/launch_gate.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"
#include "regatta/gpu/sharing/internal/hook/nvml.h"
#include "regatta/gpu/sharing/internal/hook/swap.h"
#include "regatta/gpu/sharing/internal/ledger/ledger.h"

namespace regatta::sharing::hook {

std::atomic<int> AccountingGuard::under_way = 0;
std::atomic<std::uint64_t> AccountingGuard::ended = 0;
std::atomic<bool> AccountingGuard::is_measuring = false;

namespace {

// State of one device.
struct Share {
  DriverReportedUsage memory;
  std::atomic<std::uint64_t> context_bytes = 0;  // of one context, once one has been seen
  std::atomic<double> measured_at = 0;
  std::atomic<CUcontext> met = nullptr;  // the last one
};

struct ContextState {
  std::array<Share, REGATTA_DEVICES_MAX> shares;
  Mutex mutex;
  std::map<CUcontext, CUdevice> contexts REGATTA_GUARDED_BY(mutex);
};
ContextState& context_state() {
  static auto* const only = new ContextState;
  return *only;
}
Share& share(CUdevice device) {
  return context_state().shares[as_index(device)];
}

constexpr std::uint64_t kLeastContext = 2ULL << 20;

bool has_overcommit() {
  Client* const client = tenant_client();
  return client != nullptr && client->pages().is_overcommitted() && client->is_joined_process();
}

// Else NVML knows nothing of it.
bool is_on_devices() {
  Client* const client = tenant_client();
  return client == nullptr || !client->is_joined_process() || client->pages().is_on_devices();
}

// No call that changes the process's memory is under way while it lives, unless one lasts too long.
class QuietMoment {
 public:
  QuietMoment() {
    constexpr int kTries = 400;
    AccountingGuard::is_measuring = true;
    for (int i = 0; i < kTries && AccountingGuard::under_way.load() != 0; ++i)
      os::sleep_for(Seconds{50e-6});
  }
  QuietMoment(const QuietMoment&) = delete;
  QuietMoment& operator=(const QuietMoment&) = delete;
  ~QuietMoment() { AccountingGuard::is_measuring = false; }
};

using Reading = DriverReportedUsage::Reading;

// Bytes of the process on the device that no call accounted for: exact at a moment without such a
// call. None without NVML.
std::optional<Reading> read_uncounted(CUdevice device) {
  const std::uint64_t ended = AccountingGuard::ended.load();
  const bool is_quiet = AccountingGuard::under_way.load() == 0;
  settle_pools(false);
  const auto total = process_bytes(device);
  if (!total) return std::nullopt;
  const std::uint64_t counted =
      reserved_bytes(device) - share(device).memory.held_bytes() + swappable_bytes_there(device);
  const bool is_exact = is_quiet && AccountingGuard::under_way.load() == 0 &&
                        AccountingGuard::ended.load() == ended && is_on_devices();
  return Reading(*total > counted ? *total - counted : 0, !is_exact);
}

// While other threads allocate without a pause such a moment is made.
std::optional<Reading> uncounted_bytes(CUdevice device) {
  constexpr int kTries = 10;
  // A child of fork() may have inherited calls and a lock that nobody ends.
  const Client* const client = tenant_client();
  if (client != nullptr && !client->is_joined_process()) return std::nullopt;
  for (int i = 0; i < kTries; ++i) {
    if (i > 0) os::sleep_for(Seconds{50e-6});
    if (AccountingGuard::under_way.load() != 0 || !is_on_devices()) continue;
    const auto reading = read_uncounted(device);
    if (!reading || !reading->is_least) return reading;
  }
  if (!is_on_devices()) return std::nullopt;
  static Mutex only_one;  // threads measure one after the other
  const MutexLock lock(only_one);
  const QuietMoment moment;
  return read_uncounted(device);
}

CUresult note_context(CUresult result, const CUcontext* context, CUdevice device) {
  if (result != CUDA_SUCCESS) return result;
  const MutexLock lock(context_state().mutex);
  context_state().contexts[*context] = device;
  return result;
}

bool is_seen(const DeviceContext& place) {
  if (is_known_primary(place)) return true;
  const MutexLock lock(context_state().mutex);
  return context_state().contexts.contains(place.context);
}

}  // namespace

std::optional<DriverReportedUsage::Call> begin_uncounted(CUdevice device, std::uint64_t most) {
  AccountingGuard busy;
  // A block in advance stays leased when it is not needed, and with over-commit others move for it:
  // there a block is counted when it is measured.
  const Client* const client = tenant_client();
  const bool is_left =
      client != nullptr && client->pages().is_overcommitted() && most <= REGATTA_BLOCK_BYTES;
  return share(device).memory.begin(device, is_left ? 0 : most, &busy);
}

DriverReportedUsage::Outcome settle_uncounted(CUdevice device,
                                              const DriverReportedUsage::Call& call) {
  share(device).measured_at = os::monotonic_now().value;
  return share(device).memory.settle(device, call, [&] { return uncounted_bytes(device); });
}

bool complete_uncounted(CUdevice device, const DriverReportedUsage::Call& call) {
  return !is_measurement_due(device) && share(device).memory.complete(call);
}

bool is_measurement_due(CUdevice device) {
  // With over-commit others have no room for what is counted and not there.
  const Client* const client = tenant_client();
  if (client != nullptr && client->pages().is_overcommitted()) return true;
  constexpr double kApart = 0.1;
  return share(device).memory.is_beyond_quota() ||
         os::monotonic_now().value >= share(device).measured_at + kApart;
}

bool settle_here() {
  const auto place = current_device_context();
  return !place || !is_known(place->device) || settle_uncounted(place->device, {}).is_within;
}

std::vector<DeviceContext> known_contexts() {
  std::vector<DeviceContext> all = known_primaries();
  const MutexLock lock(context_state().mutex);
  for (const auto& [context, device] : context_state().contexts)
    all.push_back({context, device});
  return all;
}

CUresult begin_context(CUcontext* context, CUdevice device, const std::function<CUresult()>& ask,
                       const std::function<void()>& undo) {
  if (!is_known(device) || context == nullptr) return ask();
  std::uint64_t expected = share(device).context_bytes;
  CUresult result = CUDA_SUCCESS;
  DriverReportedUsage::Outcome outcome;
  for (;;) {
    auto call = begin_uncounted(device, expected);
    if (!call) return CUDA_ERROR_OUT_OF_MEMORY;
    result = ask();
    call->has_failed = result != CUDA_SUCCESS;
    outcome = settle_uncounted(device, *call);
    // With over-commit others may fill the device. They make room for what is asked for, and nobody
    // knows what a first context takes: more and more, as far as the quota goes.
    if (result != CUDA_ERROR_OUT_OF_MEMORY || !has_overcommit()) break;
    expected = std::max(kLeastContext, 2 * expected);
  }
  if (result != CUDA_SUCCESS) return result;
  if (outcome.grown > share(device).context_bytes) share(device).context_bytes = outcome.grown;
  if (outcome.is_within && place_libraries({*context, device})) return result;
  undo();
  settle_uncounted(device, {});
  return CUDA_ERROR_OUT_OF_MEMORY;
}

CUdevice forget_context(CUcontext context) {
  forget_placed(context);
  for (Share& one : context_state().shares) {
    CUcontext met = context;
    one.met.compare_exchange_strong(met, nullptr);
  }
  const MutexLock lock(context_state().mutex);
  const auto node = context_state().contexts.extract(context);
  return node ? node.mapped() : -1;
}

void forget_allocations(const std::vector<Allocation>& had, CUdevice device) {
  for (const Allocation& allocation : had) {
    release_bytes(allocation);
    if (allocation.pool != nullptr) forget_in_pool(allocation);
  }
  settle_pools(true);
  if (is_known(device)) settle_uncounted(device, {});
}

CUresult end_context(CUcontext context, CUdevice device, const std::function<CUresult()>& ask,
                     const std::function<bool()>& is_gone) {
  free_swappable_of(context);
  const std::vector<Allocation> had = allocations().extract_of(context);
  leave_context(context);
  const CUresult result = ask();
  if (result != CUDA_SUCCESS || !is_gone()) {
    for (const Allocation& allocation : had)
      allocations().put(allocation);
    return result;
  }
  forget_allocations(had, device);
  return result;
}

bool account_context(const DeviceContext& place) {
  if (!is_known(place.device)) return true;
  Share& here = share(place.device);
  if (here.met.load(std::memory_order_relaxed) == place.context) [[likely]]
    return true;
  if (!is_seen(place)) {
    if (!settle_uncounted(place.device, {}).is_within) return false;
    if (primary_context(place.device) != place.context)
      note_context(CUDA_SUCCESS, &place.context, place.device);
    here.met.store(place.context, std::memory_order_relaxed);
    return place_libraries(place);
  }
  here.met.store(place.context, std::memory_order_relaxed);
  return true;
}

// More than the tenant may have cannot be undone: nobody asked for it here.
void settle_known_shares(SettleMode when) {
  const auto place = current_device_context();
  if (!place || !is_known(place->device)) return;
  if (when == SettleMode::kAlways || is_measurement_due(place->device))
    settle_uncounted(place->device, {});
}

CUresult start(DriverFunction<DriverEntry::cuInit> real, unsigned flags) {
  const CUresult result = real(flags);
  if (result != CUDA_SUCCESS) return result;
  if (!join_tenant()) return CUDA_ERROR_NOT_PERMITTED;
  watch_devices();
  return result;
}

CUresult create_context(DriverFunction<DriverEntry::cuCtxCreate_v2> real, CUcontext* context,
                        unsigned flags, CUdevice device) {
  const CUresult result = begin_context(
      context, device, [&] { return real(context, flags, device); },
      [&] { driver<DriverEntry::cuCtxDestroy_v2>()(*context); });
  return note_context(result, context, device);
}

CUresult create_context(DriverFunction<DriverEntry::cuCtxCreate_v3> real, CUcontext* context,
                        void* affinities, int count, unsigned flags, CUdevice device) {
  const CUresult result = begin_context(
      context, device, [&] { return real(context, affinities, count, flags, device); },
      [&] { driver<DriverEntry::cuCtxDestroy_v2>()(*context); });
  return note_context(result, context, device);
}

CUresult create_context(DriverFunction<DriverEntry::cuCtxCreate_v4> real, CUcontext* context,
                        void* parameters, unsigned flags, CUdevice device) {
  const CUresult result = begin_context(
      context, device, [&] { return real(context, parameters, flags, device); },
      [&] { driver<DriverEntry::cuCtxDestroy_v2>()(*context); });
  return note_context(result, context, device);
}

CUresult destroy_context(DriverFunction<DriverEntry::cuCtxDestroy_v2> real, CUcontext context) {
  const CUdevice device = forget_context(context);
  const CUresult result = end_context(
      context, device, [&] { return real(context); }, [] { return true; });
  if (result != CUDA_SUCCESS && device >= 0) note_context(CUDA_SUCCESS, &context, device);
  return result;
}

// Stacks, heaps and buffers of a context.
CUresult set_limit(DriverFunction<DriverEntry::cuCtxSetLimit> real, int limit, std::size_t value) {
  auto* const get = driver<DriverEntry::cuCtxGetLimit>();
  std::size_t before = 0;
  const bool can_undo = get != nullptr && get(&before, limit) == CUDA_SUCCESS;
  const auto place = current_device_context();
  if (!place || !is_known(place->device)) return real(limit, value);
  // A heap or buffer is as large as it is told; the driver says what a stack takes.
  const bool is_size = limit == CU_LIMIT_PRINTF_FIFO_SIZE || limit == CU_LIMIT_MALLOC_HEAP_SIZE;
  const std::uint64_t most = is_size && value > before ? whole_blocks(value - before) : 0;
  auto call = begin_uncounted(place->device, most);
  if (!call) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real(limit, value);
  call->has_failed = result != CUDA_SUCCESS;
  if (settle_uncounted(place->device, *call).is_within || result != CUDA_SUCCESS || !can_undo)
    return result;
  real(limit, before);
  settle_here();
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace regatta::sharing::hook
