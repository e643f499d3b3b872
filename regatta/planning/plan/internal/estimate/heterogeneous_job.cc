// Which devices and links each group of ranks has, and what they make of a layer.
#include "regatta/planning/plan/internal/estimate/heterogeneous_job.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::plan {
namespace {

using topo::ServerType;
using workload::Strategy;

// Ranks [first, end).
struct RankSpan {
  int first = 0;
  int end = 0;
};

cost::ServerNetwork slower_of(cost::ServerNetwork a, const cost::ServerNetwork& b) {
  a.devices = std::min(a.devices, b.devices);
  a.link = std::min(a.link, b.link);
  a.latency = std::max(a.latency, b.latency);
  for (std::size_t i = 0; i < a.reach.size(); ++i) {
    a.reach[i].devices = std::min(a.reach[i].devices, b.reach[i].devices);
    a.reach[i].rate = std::min(a.reach[i].rate, b.reach[i].rate);
  }
  return a;
}

// The server of each rank, or the scale-up domain, where links join several servers, and the
// network of each type of server.
class Ranks {
 public:
  explicit Ranks(const HeterogeneousInput& input) : cluster_(input.cluster) {
    std::map<std::string, int> numbers;
    const std::vector<int> domains = topo::scale_up_domains(cluster_);
    int last = -1;
    for (int s = 0; s < static_cast<int>(cluster_.servers.size()); ++s) {
      const topo::Server& server = cluster_.servers[as_index(s)];
      const auto [found, is_new] =
          numbers.try_emplace(server.type, static_cast<int>(types_.size()));
      if (is_new) add_type(cluster_.type_of(ServerId{s}), server, input.stack);
      const int domain = domains[as_index(s)];
      if (domain != last) type_of_server_.push_back(found->second);
      last = domain;
      const auto devices = static_cast<std::size_t>(types_[as_index(found->second)]->device_count);
      servers_.insert(servers_.end(), devices, static_cast<int>(type_of_server_.size()) - 1);
    }
  }

  int count() const { return static_cast<int>(servers_.size()); }
  int server(int rank) const { return servers_[as_index(rank)]; }
  const ServerType& type(int server) const { return *types_[number(server)]; }
  const cost::ServerNetwork& network_of(int server) const { return networks_[number(server)]; }

  // The types of the servers of these ranks.
  std::vector<const ServerType*> types(RankSpan span) const {
    std::vector<const ServerType*> found;
    for (int s = server(span.first); s <= server(span.end - 1); ++s)
      if (std::find(found.begin(), found.end(), &type(s)) == found.end()) found.push_back(&type(s));
    return found;
  }

  // The slowest of all links, `devices` the fewest of the ranks that lie in one server.
  cost::ServerNetwork network(RankSpan span) const {
    const int first = server(span.first);
    const int last = server(span.end - 1);
    cost::ServerNetwork all = network_of(first);
    if (first == last) return all;
    int begin = span.first;
    int fewest = all.devices;
    for (int s = first; s <= last; ++s) {
      int end = begin;
      while (end < span.end && server(end) == s)
        ++end;
      all = slower_of(all, network_of(s));
      fewest = std::min(fewest, end - begin);
      begin = end;
    }
    all.devices = std::max(1, fewest);
    return all;
  }

 private:
  std::size_t number(int server) const {
    return static_cast<std::size_t>(type_of_server_[as_index(server)]);
  }
  void add_type(const ServerType& type, const topo::Server& server,
                const cost::SoftwareStack& stack) {
    types_.push_back(&type);
    topo::Cluster alone;
    alone.server_types[server.type] = type;
    alone.fabric = cluster_.fabric;
    const auto count = std::ranges::count(cluster_.servers, server.type, &topo::Server::type);
    alone.servers.assign(static_cast<std::size_t>(count), server);
    networks_.push_back(cost::cluster_network(alone, stack));
  }

  const topo::Cluster& cluster_;
  std::vector<const ServerType*> types_;
  std::vector<cost::ServerNetwork> networks_;  // by type
  std::vector<int> type_of_server_;
  std::vector<int> servers_;  // by rank
};

class Builder {
 public:
  Builder(const HeterogeneousInput& input, const Ranks& ranks, HeterogeneousJob& job)
      : input_(input), ranks_(ranks), job_(job), strategy_(input.strategy) {}

  Status run() {
    const int stride = strategy_.stage_ranks();
    for (int stage = 0; stage < strategy_.pp; ++stage) {
      for (int replica = 0; replica < strategy_.dp; ++replica) {
        REGATTA_TRY(group, group_of(in_step(stage, replica)));
        job_.tensor_groups.push_back(group);
      }
      REGATTA_TRY(group, group_of({stage * stride, (stage + 1) * stride}));
      job_.stages.push_back(group);
    }
    for (int stage = 0; stage + 1 < strategy_.pp; ++stage)
      boundary(stage * stride, stride);
    tied_table();
    for (int replica = 0; replica < strategy_.dp; ++replica)
      job_.like.push_back(first_like(replica));
    return {};
  }

 private:
  // The ranks that wait for each other in every layer: those that share the tensors and the samples
  // of a replica, and all that exchange tokens with them.
  RankSpan in_step(int stage, int replica) const {
    const int alone = strategy_.tp * strategy_.cp;
    int ranks = alone;
    if (strategy_.ep > 1) ranks = std::lcm(alone, strategy_.ep * strategy_.expert_tp());
    ranks = std::min(ranks, strategy_.stage_ranks());
    const int first = stage * strategy_.stage_ranks() + replica * alone / ranks * ranks;
    return {first, first + ranks};
  }

  // Groups of the same types and as many devices in a server are the same.
  using Key = std::pair<std::vector<const ServerType*>, int>;

  Result<int> group_of(RankSpan span) {
    const cost::ServerNetwork network = ranks_.network(span);
    const Key key{ranks_.types(span), network.devices};
    const auto found = known_.find(key);
    if (found != known_.end()) return found->second;
    std::optional<HeterogeneousGroup> slowest;
    for (const ServerType* type : key.first) {
      REGATTA_TRY(group, group_on(*type, network));
      const Bytes capacity = slowest ? std::min(slowest->capacity, group.capacity) : group.capacity;
      if (!slowest || pace(slowest->work) < pace(group.work)) slowest = std::move(group);
      slowest->capacity = capacity;
    }
    job_.groups.push_back(*std::move(slowest));
    return known_[key] = static_cast<int>(job_.groups.size()) - 1;
  }

  // Most replicas are like the one before them.
  int first_like(int replica) const {
    for (int other = replica - 1; other >= 0; --other) {
      if (job_.like[as_index(other)] != other && other != replica - 1) continue;
      const int first = job_.like[as_index(other)];
      if (is_like(first, replica)) return first;
    }
    return replica;
  }

  bool is_like(int a, int b) const {
    for (int stage = 0; stage < strategy_.pp; ++stage) {
      const auto at = static_cast<std::size_t>(stage * strategy_.dp);
      const auto i = at + static_cast<std::size_t>(a);
      const auto j = at + static_cast<std::size_t>(b);
      if (job_.tensor_groups[i] != job_.tensor_groups[j]) return false;
      if (stage + 1 < strategy_.pp && job_.messages[i] != job_.messages[j]) return false;
    }
    return true;
  }

  static Seconds pace(const MicroBatchWork& work) {
    return work.blocks[0].time.total() + work.blocks[1].time.total();
  }

  Result<HeterogeneousGroup> group_on(const ServerType& type,
                                      const cost::ServerNetwork& network) const {
    const EstimateInput input{.model = input_.model,
                              .strategy = strategy_,
                              .global_batch = input_.global_batch,
                              .precision = input_.precision,
                              .server = type,
                              .stack = input_.stack};
    HeterogeneousGroup group{
        .server = &type, .device = type.device.name, .machine = machine_model(input)};
    REGATTA_TRY_DO(cost::check_precision(type.device, input_.precision));
    group.machine.network = network;
    if (input_.change) input_.change(group.machine);
    group.work = micro_batch_work(input, group.machine);
    group.capacity = type.device.memory;
    return group;
  }

  // From the stage whose ranks begin at `first` to the next: all ranks of a server that send out of
  // it share its NICs, at the speed of the slower of the two servers.
  void boundary(int first, int stride) {
    const cost::StackTraits& traits = input_.stack.traits;
    // It goes in one direction only; the mean of both is counted.
    const double seq = input_.model.seq;
    const double mask = traits.sends_mask ? seq * seq : 0;
    std::map<int, int> senders;
    for (int rank = first; rank < first + stride; ++rank)
      if (ranks_.server(rank) != ranks_.server(rank + stride)) ++senders[ranks_.server(rank)];
    const int alone = strategy_.tp * strategy_.cp;
    for (int replica = 0; replica < strategy_.dp; ++replica) {
      Seconds slowest;
      for (int one = 0; one < alone; ++one) {
        const int rank = first + replica * alone + one;
        const int from = ranks_.server(rank);
        const int to = ranks_.server(rank + stride);
        const cost::ServerNetwork way =
            changed(slower_of(ranks_.network_of(from), ranks_.network_of(to)));
        const BytesPerSecond rate =
            from == to ? way.link
                       : way.network(2 * stride) * (traits.boundary_share / senders.at(from));
        const double bytes = job_.tensor_group(first / stride, replica).work.boundary + mask;
        slowest = std::max(slowest, way.latency + Seconds{bytes / rate.value});
      }
      job_.messages.push_back(slowest);
    }
  }

  cost::ServerNetwork changed(const cost::ServerNetwork& network) const {
    if (!input_.change) return network;
    MachineModel machine{.engines = {}, .network = network};
    input_.change(machine);
    return machine.network;
  }

  // The first and the last stage hold the table; every rank adds its gradient to that of its peer.
  void tied_table() {
    const double bytes = input_.stack.traits.tied_bytes;
    if (strategy_.pp == 1 || bytes == 0 || !input_.model.tied_embeddings) return;
    const int world = ranks_.count();
    const int stride = strategy_.stage_ranks();
    cost::ServerNetwork way = ranks_.network({0, stride});
    way = changed(slower_of(way, ranks_.network({world - stride, world})));
    const bool is_inside = ranks_.server(0) == ranks_.server(world - 1);
    const double table = job_.stage_group(0).work.table;
    job_.tied_sum = collective_time(way,
                                    {.ranks = 2,
                                     .inside = is_inside ? 2 : 1,
                                     .rings = std::min(stride, way.devices),
                                     .extent = world},
                                    cost::Collective::kAllReduce, table * bytes);
  }

  const HeterogeneousInput& input_;
  const Ranks& ranks_;
  HeterogeneousJob& job_;
  const Strategy& strategy_;
  std::map<Key, int> known_;
};

Status check_form(const HeterogeneousInput& input, int devices) {
  const Strategy& s = input.strategy;
  if (s.schedule != workload::PipelineSchedule::k1F1B || s.virtual_stages > 1) {
    return Error{Code::kUnsupported,
                 fmt::format("strategy {}: servers of several types are planned for the 1f1b "
                             "schedule; leave schedule and virtual_stages out, or use servers of "
                             "one type",
                             to_string(s))};
  }
  if (s.world_size() != devices) {
    return Error{Code::kInvalidInput,
                 fmt::format("strategy {}: it has {} ranks where cluster {} has {} devices; choose "
                             "degrees whose product is {}",
                             to_string(s), s.world_size(), input.cluster.name, devices, devices)};
  }
  return {};
}

}  // namespace

Seconds HeterogeneousJob::messages_of(int stage, int replica, Seconds beside) const {
  if (strategy.pp == 1) return {};
  const auto side = [&](int boundary) {
    return messages[as_index(boundary * strategy.dp + replica)];
  };
  const Seconds before = side(std::max(0, stage - 1));
  const Seconds after = side(std::min(stage, strategy.pp - 2));
  return exposed(before + after, beside, stack.traits.pp_overlap);
}

Result<HeterogeneousJob> heterogeneous_job(const HeterogeneousInput& input) {
  const Ranks ranks(input);
  REGATTA_TRY_DO(check_form(input, ranks.count()));
  // Replicas need not have the same number of micro-batches.
  const int samples = input.strategy.dp * input.strategy.micro_batch;
  REGATTA_TRY_DO(workload::micro_batches(input.model, input.strategy, samples));
  if (input.global_batch % input.strategy.micro_batch != 0) {
    return Error{Code::kInvalidInput,
                 fmt::format("micro_batch {} does not divide global_batch {}; choose a divisor of "
                             "it",
                             input.strategy.micro_batch, input.global_batch)};
  }
  const int count = input.global_batch / input.strategy.micro_batch;
  if (count < input.strategy.dp) {
    return Error{
        Code::kInvalidInput,
        fmt::format("strategy {}: its {} replicas have {} micro-batches a step among them; "
                    "use fewer replicas or a smaller micro-batch",
                    to_string(input.strategy), input.strategy.dp, count)};
  }
  HeterogeneousJob job{.model = input.model,
                       .strategy = input.strategy,
                       .global_batch = input.global_batch,
                       .precision = input.precision,
                       .stack = input.stack,
                       .even_replicas = input.even_replicas,
                       .micro_batches = count,
                       .servers = static_cast<int>(input.cluster.servers.size())};
  REGATTA_TRY_DO(Builder(input, ranks, job).run());
  return job;
}

}  // namespace regatta::plan
