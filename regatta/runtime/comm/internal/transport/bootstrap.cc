#include "regatta/runtime/comm/internal/transport/bootstrap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/runtime/comm/handshake.h"
#include "regatta/runtime/comm/internal/transport/abort_message.h"
#include "regatta/runtime/comm/internal/transport/bootstrap_listener.h"
#include "regatta/runtime/comm/internal/transport/connector.h"
#include "regatta/runtime/comm/internal/transport/liveness_probe.h"
#include "regatta/runtime/comm/internal/transport/path_discovery.h"
#include "regatta/runtime/comm/internal/transport/tcp_link.h"

namespace regatta::comm {
namespace {

constexpr Seconds kRendezvousTime{10.0};  // added to the peer timeout
constexpr Seconds kPollTime{0.05};
// A path discovery has up to 64 sockets.
constexpr std::size_t kPathDiscoveriesAtOnce = 4;
constexpr std::size_t kPathDiscoverySockets = 256;
// Probes must not flood a large world that starts slowly.
constexpr std::size_t kLivenessProbesAtOnce = 4;

bool is_whole(const PeerChannel& channel) {
  const TcpConnections& tcp = channel.tcp;
  if (channel.uses_rdma) return static_cast<bool>(tcp.control);
  const auto are_open = [](const std::vector<os::UniqueFd>& fds) {
    return !fds.empty() && std::all_of(fds.begin(), fds.end(),
                                       [](const auto& fd) { return static_cast<bool>(fd); });
  };
  return tcp.control && are_open(tcp.out) && are_open(tcp.in);
}

class Bootstrap {
 public:
  Bootstrap(ListenEndpoint listen_endpoint, const RendezvousPlan& plan,
            const CommunicatorOptions& options)
      : rank_(plan.rank),
        world_size_(static_cast<int>(plan.endpoints.size())),
        plan_(plan),
        options_(options),
        listener_(std::move(listen_endpoint.listener)),
        shared_segment_(std::move(listen_endpoint.shared_segment)),
        rdma_(std::move(listen_endpoint.rdma)) {
    listener_.set_rank(rank_);
  }

  Status read_endpoints();
  Result<RendezvousResult> connect_all();

 private:
  // Data connections that each side of a pair sends over.
  std::size_t connections() const {
    return static_cast<std::size_t>(std::max(options_.connections, 1));
  }
  Status allow_descriptors() const;
  Status choose_rdma();
  RankHandshake handshake(int peer, std::size_t connection, bool is_shared) const;
  void call(int peer, bool is_shared);
  void discover_paths(int peer);
  bool connect_from_planned_ports(int peer);
  void serve_path_discoveries(Seconds now);
  void serve_connectors(Seconds now);
  void serve_listener(Seconds now);
  std::string check_admission(const RankHandshake& handshake) const;
  void wait(Seconds limit);
  std::vector<int> missing() const;
  Error describe_missing(const std::vector<int>& absent) const;
  Status check_peers(const std::vector<int>& absent, Seconds now);
  Error give_up(const Error& error);
  std::string name(int peer) const;

  const int rank_;
  const int world_size_;
  const RendezvousPlan& plan_;
  const CommunicatorOptions& options_;
  BootstrapListener listener_;
  SharedSegment shared_segment_;
  std::shared_ptr<VerbsDevice> rdma_;
  std::vector<PeerEndpoint> endpoints_;
  std::vector<PeerChannel> channels_;
  std::vector<Connector> connectors_;
  std::vector<LivenessProbe> liveness_probes_;  // of the ranks that this one waits for
  std::vector<std::unique_ptr<PathDiscovery>>
      path_discoveries_;  // the first kPathDiscoveriesAtOnce are under way
  std::optional<Seconds> path_discovery_end_;
  int paths_ = 1;
  ReadyFds ready_;
};

// All ranks see the same endpoints, so that all of them refuse them.
Status check_domains(const std::vector<PeerEndpoint>& endpoints) {
  std::map<std::string, std::string> domain_of;  // by server
  for (const PeerEndpoint& one : endpoints) {
    if (one.server.empty()) continue;
    const std::string& domain = domain_of.try_emplace(one.server, one.domain).first->second;
    if (domain == one.domain) continue;
    return Error{Code::kInvalidInput, "connect: ranks of server '" + one.server +
                                          "' name the domains '" + domain + "' and '" + one.domain +
                                          "': give one domain to a server"};
  }
  return {};
}

Status Bootstrap::read_endpoints() {
  for (const std::string& text : plan_.endpoints) {
    REGATTA_TRY(endpoint, parse_endpoint(text));
    endpoints_.push_back(std::move(endpoint));
  }
  REGATTA_TRY_DO(check_domains(endpoints_));
  channels_.resize(endpoints_.size());
  REGATTA_TRY_DO(choose_rdma());
  REGATTA_TRY_DO(allow_descriptors());
  for (int peer = 0; peer < rank_; ++peer) {
    const PeerEndpoint& theirs = at(endpoints_, peer);
    call(peer, theirs.server == options_.server && !theirs.unix_name.empty());
  }
  return {};
}

// Both ranks of a pair make the same choice. Ranks of one server have shared memory, and TCP where
// it does not work.
Status Bootstrap::choose_rdma() {
  for (int peer = 0; peer < world_size_; ++peer) {
    const PeerEndpoint& theirs = at(endpoints_, peer);
    const bool is_remote = peer != rank_ && theirs.server != options_.server;
    at(channels_, peer).uses_rdma = is_remote && theirs.has_rdma && rdma_ != nullptr;
    if (is_remote && !theirs.has_rdma && options_.rdma == Rdma::kRequired)
      return Error{Code::kUnsupported, name(peer) + " offers no RDMA at its address " +
                                           theirs.address +
                                           ", and this rank requires it: see its log, or let the "
                                           "ranks choose"};
  }
  return {};
}

// Every rank of another server needs a control connection and data connections in both directions.
Status Bootstrap::allow_descriptors() const {
  const auto remote =
      std::count_if(endpoints_.begin(), endpoints_.end(),
                    [&](const PeerEndpoint& theirs) { return theirs.server != options_.server; });
  const std::size_t wanted =
      static_cast<std::size_t>(remote) * (2 * connections() + 1) + kPathDiscoverySockets;
  const Status allowed = os::raise_descriptor_limit(wanted);
  if (allowed) return {};
  return Error{Code::kExhausted, name_of(rank_, options_) + ": " + allowed.error().message +
                                     ", or use fewer connections"};
}

RankHandshake Bootstrap::handshake(int peer, std::size_t connection, bool is_shared) const {
  const bool uses_rdma = at(channels_, peer).uses_rdma;
  const std::size_t count = is_shared ? 0 : uses_rdma ? 1 : connections() + 1;
  return {.rank = static_cast<std::uint32_t>(rank_),
          .world_size = static_cast<std::uint32_t>(world_size_),
          .connection = static_cast<std::uint32_t>(connection),
          .connections = static_cast<std::uint32_t>(count),
          .rendezvous_id = plan_.rendezvous_id,
          .token = options_.job_token};
}

void Bootstrap::call(int peer, bool is_shared) {
  connectors_.emplace_back(peer, at(endpoints_, peer),
                           TcpAddress{.address = options_.listen_address},
                           handshake(peer, 0, is_shared), shared_segment_.fd());
  if (!is_shared) discover_paths(peer);
}

void Bootstrap::discover_paths(int peer) {
  if (at(channels_, peer).uses_rdma) return;
  const PeerEndpoint& to = at(endpoints_, peer);
  at(channels_, peer).tcp.out.resize(connections());
  // There is no router on the path to this machine.
  if (to.address == options_.listen_address) {
    for (std::size_t connection = 1; connection <= connections(); ++connection)
      connectors_.emplace_back(peer, to, TcpAddress{.address = options_.listen_address},
                               handshake(peer, connection, false), -1);
    return;
  }
  if (connect_from_planned_ports(peer)) return;
  path_discoveries_.push_back(std::make_unique<PathDiscovery>(
      peer, options_.listen_address, TcpAddress{to.address, to.port}, connections()));
}

// Whether a plan has their source ports.
bool Bootstrap::connect_from_planned_ports(int peer) {
  if (!options_.source_ports) return false;
  std::vector<RankAddress> ranks;
  for (const PeerEndpoint& endpoint : endpoints_)
    ranks.push_back({endpoint.address, endpoint.port});
  const PlannedPorts planned = options_.source_ports(ranks, Rank{rank_}, Rank{peer});
  if (planned.ports.size() < connections()) return false;
  paths_ = std::max(paths_, planned.paths);
  for (std::size_t connection = 1; connection <= connections(); ++connection)
    connectors_.emplace_back(peer, at(endpoints_, peer),
                             TcpAddress{options_.listen_address, planned.ports[connection - 1]},
                             handshake(peer, connection, false), -1);
  return true;
}

void Bootstrap::serve_path_discoveries(Seconds now) {
  if (path_discoveries_.empty()) return;
  if (!path_discovery_end_) path_discovery_end_ = now + plan_.path_discovery_time;
  const bool is_late = now >= *path_discovery_end_;
  const std::size_t count = is_late ? path_discoveries_.size()
                                    : std::min(path_discoveries_.size(), kPathDiscoveriesAtOnce);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_late && !path_discoveries_[i]->serve(now)) continue;
    const int peer = path_discoveries_[i]->peer();
    paths_ = std::max(paths_, path_discoveries_[i]->paths());
    std::size_t connection = 1;
    for (PathDiscovery::Start& start : path_discoveries_[i]->take())
      connectors_.emplace_back(peer, at(endpoints_, peer),
                               TcpAddress{options_.listen_address, start.port},
                               handshake(peer, connection++, false), -1, std::move(start.fd));
    path_discoveries_[i].reset();
  }
  std::erase(path_discoveries_, nullptr);
}

void Bootstrap::serve_connectors(Seconds now) {
  std::vector<int> without_memory;
  std::erase_if(connectors_, [&](Connector& connector) {
    if (connector.poll_fd() >= 0 && !ready_.has(connector.poll_fd())) return false;
    const Connector::State state = connector.serve(now);
    if (state == Connector::State::kInProgress) return false;
    PeerChannel& channel = at(channels_, connector.peer());
    if (state == Connector::State::kNoSharedMemory) {
      os::log_warning("coll: no shared memory with " + name(connector.peer()) +
                      ", TCP is used instead");
      without_memory.push_back(connector.peer());
    } else if (connector.is_shared()) {
      channel.segment = connector.take_segment();
      channel.is_creator = true;
      channel.wake_socket = connector.take_fd();
      channel.shared_segment = connector.take_shared_segment();
    } else {
      os::UniqueFd& fd = connector.connection() == 0 ? channel.tcp.control
                                                     : channel.tcp.out[connector.connection() - 1];
      fd = connector.take_fd();
      tune_tcp(fd.get(), options_.peer_timeout.value, connector.connection() == 0);
    }
    return true;
  });
  for (const int peer : without_memory)
    call(peer, false);
}

// The reason to refuse a handshake; "" to accept it.
std::string Bootstrap::check_admission(const RankHandshake& handshake) const {
  if (handshake.token != options_.job_token) return "its job token is wrong";
  if (handshake.world_size != static_cast<std::uint32_t>(world_size_))
    return "it counts " + std::to_string(handshake.world_size) + " ranks, not " +
           std::to_string(world_size_);
  if (handshake.rendezvous_id != plan_.rendezvous_id)
    return "it belongs to another rendezvous of these ranks";
  // Lower ranks connect for data only.
  const bool is_data = handshake.connections != 0 && handshake.connection != 0;
  const auto own_rank = static_cast<std::uint32_t>(rank_);
  if (handshake.rank >= handshake.world_size || handshake.rank == own_rank ||
      (handshake.rank < own_rank && !is_data))
    return "rank " + std::to_string(handshake.rank) + " does not connect to this rank";
  const PeerChannel& channel = channels_[handshake.rank];
  constexpr std::uint32_t kConnectedMax = kConnectionsMax + 1;  // one for control
  if (handshake.connections == 0)
    return channel.segment ? "there is such a connection already" : "";
  if (channel.uses_rdma != (handshake.connections == 1))
    return channel.uses_rdma ? "it wants TCP where this rank wants RDMA"
                             : "it wants RDMA where this rank wants TCP";
  if (channel.uses_rdma && handshake.connection == 0)
    return channel.tcp.control ? "there is such a connection already" : "";
  if (handshake.connections < 2 || handshake.connections > kConnectedMax ||
      handshake.connection >= handshake.connections)
    return "its connection count is wrong";
  if (!is_data) return channel.tcp.control ? "there is such a connection already" : "";
  if (channel.tcp.in.empty()) return "";
  if (channel.tcp.in.size() != handshake.connections - 1) return "its connection count changed";
  return channel.tcp.in[handshake.connection - 1] ? "there is such a connection already" : "";
}

void Bootstrap::serve_listener(Seconds now) {
  const auto check_handshake = [this](const RankHandshake& handshake) {
    return check_admission(handshake);
  };
  for (AcceptedConnection& accepted : listener_.serve(now, ready_, check_handshake)) {
    PeerChannel& channel = channels_[accepted.handshake.rank];
    if (accepted.segment) {
      channel.segment = std::move(accepted.segment);
      channel.wake_socket = std::move(accepted.fd);
      channel.shared_segment = std::move(accepted.shared_segment);
    } else {
      tune_tcp(accepted.fd.get(), options_.peer_timeout.value, accepted.handshake.connection == 0);
      channel.tcp.in.resize(accepted.handshake.connections - 1);
      if (accepted.handshake.connection == 0) {
        const bool is_again = static_cast<bool>(channel.tcp.control);
        channel.tcp.control = std::move(accepted.fd);
        if (!is_again) discover_paths(static_cast<int>(accepted.handshake.rank));
      } else {
        channel.tcp.in[accepted.handshake.connection - 1] = std::move(accepted.fd);
      }
    }
  }
}

void Bootstrap::wait(Seconds limit) {
  std::vector<pollfd> fds;
  listener_.add_poll_fds(fds);
  for (const Connector& connector : connectors_)
    if (connector.poll_fd() >= 0)
      fds.push_back({connector.poll_fd(),
                     static_cast<short>(connector.wants_to_write() ? POLLOUT : POLLIN), 0});
  for (const auto& discovery : path_discoveries_)
    discovery->add_poll_fds(fds);
  for (const PeerChannel& channel : channels_)
    if (const int fd = close_event_fd(channel); fd >= 0) fds.push_back({fd, POLLRDHUP, 0});
  ready_.wait(fds, std::clamp(limit, Seconds{0.0}, kPollTime));
}

std::vector<int> Bootstrap::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < world_size_; ++peer) {
    const PeerChannel& channel = at(channels_, peer);
    if (peer == rank_ || channel.segment) continue;
    if (!is_whole(channel)) ranks.push_back(peer);
  }
  return ranks;
}

Error Bootstrap::describe_missing(const std::vector<int>& absent) const {
  std::vector<std::string> names;
  names.reserve(absent.size());
  for (const int peer : absent)
    names.push_back(name(peer));
  return {Code::kTimeout, join(names, ", ") + ": no connection within " +
                              format_seconds(rendezvous_timeout(options_)) +
                              "; see whether it runs and can be reached"};
}

// Whether all ranks can still connect: connections are open, and the others have a listener.
Status Bootstrap::check_peers(const std::vector<int>& absent, Seconds now) {
  for (int peer = 0; peer < world_size_; ++peer) {
    PeerChannel& channel = at(channels_, peer);
    const int fd = close_event_fd(channel);
    if (fd < 0 || !ready_.has(fd)) continue;
    if (const auto reason = read_abort_message(channel)) return *reason;
    return Error{Code::kUnavailable,
                 name(peer) + ": connection lost while the ranks were connecting"};
  }
  for (const int peer : absent) {
    if (liveness_probes_.size() == kLivenessProbesAtOnce) break;
    const auto is_of_peer = [&](const LivenessProbe& probe) { return probe.peer() == peer; };
    if (std::any_of(liveness_probes_.begin(), liveness_probes_.end(), is_of_peer)) continue;
    const PeerEndpoint& to = at(endpoints_, peer);
    liveness_probes_.emplace_back(peer, to, options_.listen_address, to.server == options_.server);
  }
  std::erase_if(liveness_probes_, [&](const LivenessProbe& probe) {
    return close_event_fd(at(channels_, probe.peer())) >= 0;
  });
  for (LivenessProbe& probe : liveness_probes_)
    if (probe.finds_peer_gone(now))
      return Error{Code::kUnavailable,
                   name(probe.peer()) + ": its listener is closed: its process has ended"};
  return {};
}

Error Bootstrap::give_up(const Error& error) {
  for (PeerChannel& channel : channels_)
    send_abort_message(channel, error);
  return error;
}

Result<RendezvousResult> Bootstrap::connect_all() {
  const Seconds deadline = os::monotonic_now() + rendezvous_timeout(options_);
  for (std::vector<int> absent = missing(); !absent.empty(); absent = missing()) {
    const Seconds now = os::monotonic_now();
    if (now >= deadline) return give_up(describe_missing(absent));
    if (plan_.is_cancelled && plan_.is_cancelled())
      return give_up({Code::kUnavailable, "another rank cancelled the rendezvous"});
    const Status alive = check_peers(absent, now);
    if (!alive) return give_up(alive.error());
    serve_listener(now);
    serve_path_discoveries(now);
    serve_connectors(now);
    if (!missing().empty()) wait(deadline - now);
  }
  shared_segment_.close_fd();
  RendezvousResult rendezvous{.channels = std::move(channels_),
                              .names = {},
                              .endpoints = endpoints_,
                              .shared_segment = std::move(shared_segment_),
                              .paths = paths_,
                              .rdma = std::move(rdma_)};
  rendezvous.names.reserve(endpoints_.size());
  for (int peer = 0; peer < world_size_; ++peer)
    rendezvous.names.push_back(name(peer));
  return rendezvous;
}

std::string Bootstrap::name(int peer) const {
  const std::string& server = at(endpoints_, peer).server;
  return name_of(peer, options_) + (server.empty() ? "" : " at " + server);
}

// A closed one where it cannot be created: collectives inside a server then use messages.
SharedSegment make_shared_segment() {
  auto shared_segment = SharedSegment::create();
  if (shared_segment) return std::move(*shared_segment);
  os::log_warning("coll: collectives inside the server will be slow: " +
                  shared_segment.error().message);
  return {};
}

}  // namespace

std::string name_of(int rank, const CommunicatorOptions& options) {
  const auto index = static_cast<std::size_t>(rank);
  return index < options.rank_names.size() ? options.rank_names[index]
                                           : "rank " + std::to_string(rank);
}

namespace {

// Null where RDMA is not used; an error where it is required. `host`: the name of the rank, for
// messages.
Result<std::shared_ptr<VerbsDevice>> open_rdma(const std::string& host,
                                               const CommunicatorOptions& options) {
  if (options.rdma == Rdma::kOff) return std::shared_ptr<VerbsDevice>();
  auto device = open_verbs(options.listen_address);
  if (device) return device;
  const std::string why = host + ": " + device.error().message;
  if (options.rdma == Rdma::kRequired) return Error{device.error().code, why};
  // Most machines have no device; only one that exists and cannot be used is logged.
  if (device.error().code != Code::kUnsupported && device.error().code != Code::kInvalidInput)
    os::log_warning("coll: TCP is used instead of RDMA: " + why);
  return std::shared_ptr<VerbsDevice>();
}

}  // namespace

Seconds rendezvous_timeout(const CommunicatorOptions& options) {
  return options.peer_timeout + kRendezvousTime;
}

Result<ListenEndpoint> open_listen_endpoint(const std::string& host, bool has_shared_segment,
                                            const CommunicatorOptions& options) {
  if (options.job_token.size() > kTokenBytesMax)
    return Error{Code::kInvalidInput, "the job token is longer than " +
                                          std::to_string(kTokenBytesMax) + " bytes: shorten it"};
  REGATTA_TRY(rdma, open_rdma(host, options));
  SharedSegment shared_segment = has_shared_segment ? make_shared_segment() : SharedSegment();
  REGATTA_TRY(listener, BootstrapListener::open(host, options.listen_address, shared_segment.fd()));
  std::string endpoint = format_endpoint({.address = options.listen_address,
                                          .port = listener.port(),
                                          .unix_name = listener.unix_name(),
                                          .link_rate = options.link_rate,
                                          .has_rdma = rdma != nullptr,
                                          .domain = options.domain,
                                          .server = options.server});
  return ListenEndpoint{std::move(shared_segment), std::move(listener), std::move(rdma),
                        std::move(endpoint)};
}

Result<RendezvousResult> run_rendezvous(ListenEndpoint listen_endpoint, const RendezvousPlan& plan,
                                        const CommunicatorOptions& options) {
  Bootstrap bootstrap(std::move(listen_endpoint), plan, options);
  REGATTA_TRY_DO(bootstrap.read_endpoints());
  return bootstrap.connect_all();
}

Result<RendezvousResult> run_rendezvous(int rank, int world_size, const Exchange& exchange,
                                        const CommunicatorOptions& options) {
  REGATTA_TRY(listen_endpoint,
              open_listen_endpoint(name_of(rank, options), world_size > 1, options));
  REGATTA_TRY(texts, exchange(listen_endpoint.endpoint));
  if (texts.size() != static_cast<std::size_t>(world_size))
    return Error{Code::kInvalidInput, "the exchange returned " + std::to_string(texts.size()) +
                                          " endpoints for " + std::to_string(world_size) +
                                          " ranks: give one for each rank, in rank order"};
  const RendezvousPlan plan{.rank = rank, .endpoints = std::move(texts), .is_cancelled = {}};
  return run_rendezvous(std::move(listen_endpoint), plan, options);
}

}  // namespace regatta::comm
