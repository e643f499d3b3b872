#include "regatta/runtime/comm/communicator.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/base/os/log.h"
#include "regatta/runtime/comm/internal/communicator_impl.h"
#include "regatta/runtime/comm/internal/engine/handle_state.h"
#include "regatta/runtime/comm/internal/group_scope.h"
#include "regatta/runtime/comm/internal/transport/bootstrap.h"
#include "regatta/runtime/comm/internal/tuning/network_probe.h"
#include "regatta/runtime/comm/tuner.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::comm {
namespace {

constexpr Seconds kTimeoutMax{86400};

// The name of a child communicator: the same on all its ranks without a word between them.
std::uint64_t child_id(std::uint64_t parent, std::uint32_t split, int color) {
  std::uint64_t x = parent * 0x9e3779b97f4a7c15ULL + split;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL + static_cast<std::uint32_t>(color);
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Where the ranks lie: on the same server, or in the same scale-up domain.
cost::RankLocations sites_of(const std::vector<PeerEndpoint>& endpoints) {
  cost::RankLocations sites;
  std::map<std::string, int> numbers;
  for (std::size_t rank = 0; rank < endpoints.size(); ++rank) {
    const PeerEndpoint& one = endpoints[rank];
    // A rank that names no server is alone on one.
    const std::string server = one.server.empty() ? "\t" + std::to_string(rank) : one.server;
    const std::string key = one.domain.empty() ? server : "\n" + one.domain;
    const auto next = static_cast<int>(numbers.size());
    sites.server.push_back(numbers.try_emplace(key, next).first->second);
    sites.rate.push_back(one.link_rate);
  }
  return sites;
}

std::string or_environment(const std::string& given, const char* variable) {
  const char* found = given.empty() ? std::getenv(variable) : nullptr;
  return found == nullptr ? given : found;
}

std::string flight_folder(const CommunicatorOptions& options) {
  return or_environment(options.flight_dir, "REGATTA_FLIGHT_DIR");
}

// Null when it is not wanted or cannot be had.
std::shared_ptr<WatchFile> open_watch(int rank, const RendezvousResult& rendezvous,
                                      const CommunicatorOptions& options) {
  if (!options.watch) return nullptr;
  std::vector<std::string> endpoints;
  for (const PeerEndpoint& endpoint : rendezvous.endpoints)
    endpoints.push_back(format_endpoint(endpoint));
  auto watch = WatchFile::create({.job = or_environment(options.job_name, "REGATTA_JOB_NAME"),
                                  .server = options.server,
                                  .token_hash = hash_token(options.job_token),
                                  .world = hash_texts(endpoints),
                                  .rank = rank,
                                  .names = rendezvous.names});
  if (watch) return std::move(*watch);
  os::log_warning("coll: nobody can look at this rank's collectives: " + watch.error().message);
  return nullptr;
}

}  // namespace

int connections_among(int world_size, int wanted) {
  constexpr int kOfARank = 128;
  return std::min(wanted, std::max(1, kOfARank / std::max(1, world_size - 1)));
}

CommunicatorOptions fit_connections(CommunicatorOptions options, int world_size) {
  options.connections = connections_among(world_size, options.connections);
  return options;
}

void Communicator::Impl::enter_watch() {
  if (WatchFile* watch = world->watch(); watch != nullptr)
    group->log = watch->add_group(group->id, group->rank, group->members);
}

void Communicator::Impl::create_algorithm_selector() const {
  cost::RankLocations mine;
  for (const int member : group->members) {
    mine.server.push_back(at(world_config->sites.server, member));
    mine.rate.push_back(at(world_config->sites.rate, member));
  }
  auto algorithm_selector = std::make_shared<AlgorithmSelector>(AlgorithmSelectorSetup{
      .self = group_position(),
      .grid = cost::plan_hierarchical_layout(mine),
      .sites = mine,
      .network = world_config->network,
      .forced = world_config->forced,
      .measure = options->deterministic ? std::min(world_config->measure, Measure::kTransport)
                                        : world_config->measure});
  algorithm_selector->load(world_config->loaded);
  group->algorithm_selector = std::move(algorithm_selector);
}

void Communicator::Impl::tune_shared() const {
  if (shm != nullptr)
    shm->tune({.ranks = group_position().world_size,
               .forced = world_config->forced,
               .measure = world_config->measure,
               .loaded = world_config->loaded});
}

SharedMemorySlot Communicator::Impl::offer_slot(int region) const {
  ShmWorld* shared = world->shm();
  if (shared == nullptr || region < 0 || group->members.size() < 2) return {};
  return {shared->start_of(region), region, shared->reaches(group->members) ? 1 : 0};
}

Status Communicator::Impl::join_shared(const std::vector<SharedMemorySlot>& slots) {
  GroupStart start;
  for (const SharedMemorySlot& slot : slots) {
    if (slot.reaches_all == 0) return {};
    start.sequence = std::max(start.sequence, slot.start.sequence);
    start.rounds = std::max(start.rounds, slot.start.rounds);
  }
  ShmWorld* shared = world->shm();
  REGATTA_TRY(joined, shared->make_group(*group, slots[0].region, start));
  shm = std::move(joined);
  return {};
}

bool Handle::done() const {
  if (state_ == nullptr || state_->done.load(std::memory_order_acquire)) return true;
  if (!state_->parts.empty())
    return std::all_of(state_->parts.begin(), state_->parts.end(),
                       [](const auto& part) { return Handle(part).done(); });
  if (state_->driver == nullptr) return false;
  state_->driver->poll();
  return state_->done.load(std::memory_order_acquire);
}

Status Handle::wait() {
  if (state_ == nullptr) return {};
  if (!state_->parts.empty()) {
    Status first;
    for (const auto& part : state_->parts)
      if (const Status status = Handle(part).wait(); !status && first) first = status;
    return first;
  }
  if (!state_->done.load(std::memory_order_acquire)) {
    if (state_->driver != nullptr)
      state_->driver->wait(*state_);
    else
      state_->done.wait(false, std::memory_order_acquire);
  }
  if (state_->error) return *state_->error;
  return {};
}

Seconds Handle::started_at() const {
  if (state_ == nullptr) return {};
  Seconds first{state_->started_s.load()};
  for (const auto& part : state_->parts) {
    const Seconds started = Handle(part).started_at();
    if (first.value == 0 || (started.value > 0 && started < first)) first = started;
  }
  return first;
}

Seconds Handle::ended_at() const {
  if (state_ == nullptr) return {};
  Seconds last{state_->ended_s.load()};
  for (const auto& part : state_->parts)
    last = std::max(last, Handle(part).ended_at());
  return last;
}

Communicator::Communicator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Communicator::~Communicator() = default;
Communicator::Communicator(Communicator&&) noexcept = default;
Communicator& Communicator::operator=(Communicator&&) noexcept = default;

Result<Communicator> Communicator::connect(Rank rank, int world_size, const Exchange& exchange,
                                           const CommunicatorOptions& options) {
  if (world_size < 1 || rank.value < 0 || rank.value >= world_size)
    return Error{Code::kInvalidInput, "connect: rank " + std::to_string(rank.value) +
                                          " is not in a world of " + std::to_string(world_size) +
                                          " ranks"};
  REGATTA_TRY_DO(GroupScope::refuse("connect"));
  const double peer_s = options.peer_timeout.value;
  const double progress_s = options.progress_timeout.value;
  if (!(peer_s > 0 && peer_s <= kTimeoutMax.value && progress_s >= 0 &&
        progress_s <= kTimeoutMax.value))
    return Error{Code::kInvalidInput,
                 "connect: the peer timeout must be positive, the progress timeout not negative, "
                 "and both at most a day"};
  if (options.connections < 1 || options.connections > kConnectionsMax)
    return Error{Code::kInvalidInput, "connect: " + std::to_string(options.connections) +
                                          " connections to a peer are not 1 to " +
                                          std::to_string(kConnectionsMax)};
  if (options.sums_in_f64 && !options.deterministic)
    return Error{Code::kInvalidInput,
                 "connect: sums_in_f64 belongs to the deterministic mode: set deterministic too"};
  REGATTA_TRY_DO(parse_tuning(options.tuning));
  CommunicatorOptions fitted = fit_connections(options, world_size);
  fitted.domain = or_environment(options.domain, "REGATTA_DOMAIN");
  if (fitted.domain.find('\t') != std::string::npos)
    return Error{Code::kInvalidInput,
                 "connect: the domain '" + fitted.domain + "' has a tab: give a name without tabs"};
  REGATTA_TRY(rendezvous, run_rendezvous(rank.value, world_size, exchange, fitted));
  REGATTA_TRY(impl, Impl::create(rank.value, std::move(rendezvous), fitted, nullptr));
  CommunicatorOptions kept = options;
  kept.domain = fitted.domain;
  impl->options = std::make_shared<const CommunicatorOptions>(std::move(kept));
  return Communicator(std::move(impl));
}

Result<std::unique_ptr<Communicator::Impl>> Communicator::Impl::create(
    int rank, RendezvousResult rendezvous, const CommunicatorOptions& options,
    const NetworkParameters* network) {
  REGATTA_TRY(loaded, parse_tuning(options.tuning));
  auto impl = std::make_unique<Impl>();
  impl->options = std::make_shared<const CommunicatorOptions>(options);
  WorldConfig world_config{
      .sites = sites_of(rendezvous.endpoints),
      .network = {.connections = options.connections, .paths = rendezvous.paths},
      .forced = options.forced,
      .measure = Measure::kNothing,
      .loaded = {}};
  impl->world_config = std::make_shared<const WorldConfig>(world_config);
  impl->group = std::make_shared<CommunicatorState>();
  impl->group->id = kWorldGroup;
  impl->group->rank = rank;
  for (std::size_t member = 0; member < rendezvous.endpoints.size(); ++member)
    impl->group->members.push_back(static_cast<int>(member));
  std::vector<SharedMemorySlot> slots(rendezvous.endpoints.size());
  auto watch = open_watch(rank, rendezvous, options);
  REGATTA_TRY(world, World::start({.rank = rank,
                                   .channels = std::move(rendezvous.channels),
                                   .names = std::move(rendezvous.names),
                                   .shared_segment = std::move(rendezvous.shared_segment),
                                   .rdma = std::move(rendezvous.rdma),
                                   .connections = options.connections,
                                   .caller_moves_data = options.caller_moves_data,
                                   .peer_timeout = options.peer_timeout,
                                   .progress_timeout = options.progress_timeout,
                                   .watch = std::move(watch),
                                   .flight_dir = flight_folder(options)}));
  impl->world = std::move(world);
  impl->enter_watch();
  impl->create_algorithm_selector();
  const SharedMemorySlot mine = impl->offer_slot(0);
  Communicator communicator(std::move(impl));
  REGATTA_TRY_DO(communicator.all_gather(&mine, slots.data(), sizeof mine, DataType::kU8).wait());
  REGATTA_TRY_DO(communicator.impl_->join_shared(slots));
  if (network != nullptr) {
    world_config.network = *network;
  } else if (communicator.impl_->shm == nullptr && communicator.world_size() > 1 &&
             options.measure == Measure::kAll) {
    REGATTA_TRY(probed, probe_network(communicator, world_config.network));
    world_config.network = probed;
  }
  world_config.measure = options.measure;
  world_config.loaded = std::move(loaded);
  communicator.impl_->world_config = std::make_shared<const WorldConfig>(std::move(world_config));
  communicator.impl_->create_algorithm_selector();
  communicator.impl_->tune_shared();
  communicator.impl_->world->traffic().restart();
  return std::move(communicator.impl_);
}

Rank Communicator::rank() const {
  return Rank{impl_->group ? impl_->group->rank : -1};
}

int Communicator::world_size() const {
  return impl_->group ? static_cast<int>(impl_->group->members.size()) : 0;
}

SharedMemorySlot Communicator::Impl::init_from_parent(const Impl& parent, std::uint32_t split,
                                                      int color,
                                                      const std::vector<SplitRequest>& requests) {
  world = parent.world;
  group = std::make_shared<CommunicatorState>();
  group->id = child_id(parent.group->id, split, color);
  std::uint64_t free_regions = ~std::uint64_t{0};
  for (std::size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].color != color) continue;
    free_regions &= requests[i].free_regions;
    if (static_cast<int>(i) == parent.group->rank)
      group->rank = static_cast<int>(group->members.size());
    group->members.push_back(parent.group->members[i]);
  }
  enter_watch();
  world_config = parent.world_config;
  create_algorithm_selector();
  return free_regions == 0 ? SharedMemorySlot{} : offer_slot(std::countr_zero(free_regions));
}

Result<Communicator> Communicator::split(int color) {
  if (impl_->world == nullptr)
    return Error{Code::kInvalidInput, "split: this rank is not in the communicator"};
  REGATTA_TRY_DO(GroupScope::refuse("split"));
  const std::vector<int>& members = impl_->group->members;
  ShmWorld* shared = impl_->world->shm();
  const SplitRequest offer{.color = color, .free_regions = shared ? shared->free_regions() : 0};
  std::vector<SplitRequest> requests(members.size());
  REGATTA_TRY_DO(all_gather(&offer, requests.data(), sizeof offer, DataType::kU8).wait());
  const std::uint32_t split = impl_->splits++;
  auto impl = std::make_unique<Impl>();
  impl->options = impl_->options;
  SharedMemorySlot mine_in_child;
  if (color >= 0) mine_in_child = impl->init_from_parent(*impl_, split, color, requests);
  std::vector<SharedMemorySlot> slots(members.size());
  REGATTA_TRY_DO(
      all_gather(&mine_in_child, slots.data(), sizeof mine_in_child, DataType::kU8).wait());
  if (color < 0) return Communicator(std::move(impl));
  std::vector<SharedMemorySlot> slots_in_child;
  for (std::size_t i = 0; i < members.size(); ++i)
    if (requests[i].color == color) slots_in_child.push_back(slots[i]);
  REGATTA_TRY_DO(impl->join_shared(slots_in_child));
  impl->tune_shared();
  return Communicator(std::move(impl));
}

Result<Communicator> duplicate(Communicator& communicator) {
  return communicator.split(0);
}

Result<std::shared_ptr<std::byte>> Communicator::allocate(std::size_t bytes) {
  if (ShmWorld* shared = impl_->world ? impl_->world->shm() : nullptr; shared != nullptr) {
    if (auto memory = shared->buffers().allocate(bytes)) return memory;
    return Error{Code::kExhausted,
                 "allocate: the rank's 64 GiB of shared buffers are used up: "
                 "release some, or use private memory"};
  }
  constexpr std::size_t kPage = 4096;
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max() / 2;
  void* found = bytes > kMost ? nullptr
                              : std::aligned_alloc(
                                    kPage, std::max(kPage, (bytes + kPage - 1) / kPage * kPage));
  auto* data = static_cast<std::byte*>(found);
  if (data == nullptr)
    return Error{Code::kExhausted,
                 "allocate: no memory for " + format_bytes(Bytes{static_cast<long long>(bytes)})};
  std::memset(data, 0, bytes);
  return std::shared_ptr<std::byte>(
      data, [](std::byte* memory) { std::free(memory); });  // NOLINT(*-no-malloc)
}

std::vector<TuningChoice> tuning_choices(const Communicator& communicator) {
  const Communicator::Impl& impl = *communicator.impl_;
  if (impl.group == nullptr || impl.group->algorithm_selector == nullptr) return {};
  if (impl.shm != nullptr) return impl.shm->choices();
  return impl.group->algorithm_selector->choices();
}

bool is_tuned(const Communicator& communicator) {
  const Communicator::Impl& impl = *communicator.impl_;
  if (impl.shm != nullptr) return impl.shm->is_tuned();
  return impl.group == nullptr || impl.group->algorithm_selector->is_settled();
}

Traffic traffic_of(const Communicator& communicator) {
  const Communicator::Impl& impl = *communicator.impl_;
  return impl.world ? impl.world->traffic().snapshot() : Traffic{};
}

}  // namespace regatta::comm
