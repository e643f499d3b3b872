#include "regatta/runtime/comm/internal/transport/bootstrap.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <poll.h>

#include "regatta/base/core/log.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units_text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/descriptors.h"
#include "regatta/runtime/comm/hello.h"
#include "regatta/runtime/comm/internal/transport/dial.h"
#include "regatta/runtime/comm/internal/transport/door.h"
#include "regatta/runtime/comm/internal/transport/farewell.h"
#include "regatta/runtime/comm/internal/transport/knock.h"
#include "regatta/runtime/comm/internal/transport/survey.h"
#include "regatta/runtime/comm/internal/transport/tcp_link.h"

namespace regatta::comm {
namespace {

constexpr Seconds kPatience{10.0};  // added to the peer timeout
constexpr Seconds kPollTime{0.05};
// A survey has up to 64 sockets.
constexpr std::size_t kSurveysAtOnce = 4;
constexpr std::size_t kSurveySockets = 256;
// A large world that starts slowly is not to be flooded by knocks.
constexpr std::size_t kKnocksAtOnce = 4;

bool is_whole(const Channel& channel) {
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
  Bootstrap(Entrance entrance, const MeetingPlan& plan, const Options& options)
      : rank_(plan.rank),
        world_size_(static_cast<int>(plan.endpoints.size())),
        plan_(plan),
        options_(options),
        door_(std::move(entrance.door)),
        shelf_(std::move(entrance.shelf)),
        rdma_(std::move(entrance.rdma)) {
    door_.set_rank(rank_);
  }

  Status read_endpoints();
  Result<Meeting> meet_all();

 private:
  // Data connections that each side of a pair sends over.
  std::size_t connections() const {
    return static_cast<std::size_t>(std::max(options_.connections, 1));
  }
  Status allow_descriptors() const;
  Status choose_rdma();
  Hello hello(int peer, std::size_t connection, bool is_shared) const;
  void call(int peer, bool is_shared);
  void survey(int peer);
  bool dial_from_given_ports(int peer);
  void serve_surveys(Seconds now);
  void serve_dials(Seconds now);
  void serve_door(Seconds now);
  std::string judge(const Hello& hello) const;
  void wait(Seconds limit);
  std::vector<int> missing() const;
  Error describe_missing(const std::vector<int>& absent) const;
  Status look_after(const std::vector<int>& absent, Seconds now);
  Error give_up(const Error& error);
  std::string name(int peer) const;

  const int rank_;
  const int world_size_;
  const MeetingPlan& plan_;
  const Options& options_;
  Door door_;
  Shelf shelf_;
  std::shared_ptr<VerbsDevice> rdma_;
  std::vector<Endpoint> endpoints_;
  std::vector<Channel> channels_;
  std::vector<Dial> dials_;
  std::vector<Knock> knocks_;                     // of the ranks that this one waits for
  std::vector<std::unique_ptr<Survey>> surveys_;  // the first kSurveysAtOnce are under way
  std::optional<Seconds> surveys_end_;
  int ways_ = 1;
  ReadyFds ready_;
};

Status Bootstrap::read_endpoints() {
  for (const std::string& text : plan_.endpoints) {
    REGATTA_TRY(endpoint, parse_endpoint(text));
    endpoints_.push_back(std::move(endpoint));
  }
  channels_.resize(endpoints_.size());
  REGATTA_TRY_DO(choose_rdma());
  REGATTA_TRY_DO(allow_descriptors());
  for (int peer = 0; peer < rank_; ++peer) {
    const Endpoint& theirs = endpoints_[static_cast<std::size_t>(peer)];
    call(peer, theirs.server == options_.server && !theirs.unix_name.empty());
  }
  return {};
}

// Both ranks of a pair come to the same choice. Ranks of one server have shared memory, and TCP
// where that cannot be had.
Status Bootstrap::choose_rdma() {
  for (int peer = 0; peer < world_size_; ++peer) {
    const Endpoint& theirs = endpoints_[static_cast<std::size_t>(peer)];
    const bool is_remote = peer != rank_ && theirs.server != options_.server;
    channels_[static_cast<std::size_t>(peer)].uses_rdma =
        is_remote && theirs.has_rdma && rdma_ != nullptr;
    if (is_remote && !theirs.has_rdma && options_.rdma == Rdma::kRequired)
      return Error{Code::kUnsupported, name(peer) + " offers no RDMA at its address " +
                                           theirs.address +
                                           ", and this rank requires it: see its log, or let the "
                                           "ranks choose"};
  }
  return {};
}

// Every rank of another server takes a control connection and data connections in both directions.
Status Bootstrap::allow_descriptors() const {
  const auto remote =
      std::count_if(endpoints_.begin(), endpoints_.end(),
                    [&](const Endpoint& theirs) { return theirs.server != options_.server; });
  const std::size_t wanted =
      static_cast<std::size_t>(remote) * (2 * connections() + 1) + kSurveySockets;
  const Status allowed = os::allow_descriptors(wanted);
  if (allowed) return {};
  return Error{Code::kExhausted, name_of(rank_, options_) + ": " + allowed.error().message +
                                     ", or use fewer connections"};
}

Hello Bootstrap::hello(int peer, std::size_t connection, bool is_shared) const {
  const bool uses_rdma = channels_[static_cast<std::size_t>(peer)].uses_rdma;
  const std::size_t count = is_shared ? 0 : uses_rdma ? 1 : connections() + 1;
  return {.rank = static_cast<std::uint32_t>(rank_),
          .world_size = static_cast<std::uint32_t>(world_size_),
          .connection = static_cast<std::uint32_t>(connection),
          .connections = static_cast<std::uint32_t>(count),
          .meeting = plan_.meeting,
          .token = options_.job_token};
}

void Bootstrap::call(int peer, bool is_shared) {
  dials_.emplace_back(peer, endpoints_[static_cast<std::size_t>(peer)],
                      TcpAddress{.address = options_.listen_address}, hello(peer, 0, is_shared),
                      shelf_.fd());
  if (!is_shared) survey(peer);
}

void Bootstrap::survey(int peer) {
  if (channels_[static_cast<std::size_t>(peer)].uses_rdma) return;
  const Endpoint& to = endpoints_[static_cast<std::size_t>(peer)];
  channels_[static_cast<std::size_t>(peer)].tcp.out.resize(connections());
  // No router on the way to the own machine.
  if (to.address == options_.listen_address) {
    for (std::size_t connection = 1; connection <= connections(); ++connection)
      dials_.emplace_back(peer, to, TcpAddress{.address = options_.listen_address},
                          hello(peer, connection, false), -1);
    return;
  }
  if (dial_from_given_ports(peer)) return;
  surveys_.push_back(std::make_unique<Survey>(peer, options_.listen_address,
                                              TcpAddress{to.address, to.port}, connections()));
}

// Whether somebody has planned where they start from.
bool Bootstrap::dial_from_given_ports(int peer) {
  if (!options_.source_ports) return false;
  std::vector<RankAddress> ranks;
  for (const Endpoint& endpoint : endpoints_)
    ranks.push_back({endpoint.address, endpoint.port});
  const PlannedPorts planned = options_.source_ports(ranks, Rank{rank_}, Rank{peer});
  if (planned.ports.size() < connections()) return false;
  ways_ = std::max(ways_, planned.ways);
  for (std::size_t connection = 1; connection <= connections(); ++connection)
    dials_.emplace_back(peer, endpoints_[static_cast<std::size_t>(peer)],
                        TcpAddress{options_.listen_address, planned.ports[connection - 1]},
                        hello(peer, connection, false), -1);
  return true;
}

void Bootstrap::serve_surveys(Seconds now) {
  if (surveys_.empty()) return;
  if (!surveys_end_) surveys_end_ = now + plan_.survey_time;
  const bool is_late = now >= *surveys_end_;
  const std::size_t count = is_late ? surveys_.size() : std::min(surveys_.size(), kSurveysAtOnce);
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_late && !surveys_[i]->serve(now)) continue;
    const int peer = surveys_[i]->peer();
    ways_ = std::max(ways_, surveys_[i]->ways());
    std::size_t connection = 1;
    for (Survey::Start& start : surveys_[i]->take())
      dials_.emplace_back(peer, endpoints_[static_cast<std::size_t>(peer)],
                          TcpAddress{options_.listen_address, start.port},
                          hello(peer, connection++, false), -1, std::move(start.fd));
    surveys_[i].reset();
  }
  std::erase(surveys_, nullptr);
}

void Bootstrap::serve_dials(Seconds now) {
  std::vector<int> without_memory;
  std::erase_if(dials_, [&](Dial& dial) {
    if (dial.poll_fd() >= 0 && !ready_.has(dial.poll_fd())) return false;
    const Dial::State state = dial.serve(now);
    if (state == Dial::State::kGoesOn) return false;
    Channel& channel = channels_[static_cast<std::size_t>(dial.peer())];
    if (state == Dial::State::kNoSharedMemory) {
      log_warning("coll: no shared memory with " + name(dial.peer()) + ", TCP is used instead");
      without_memory.push_back(dial.peer());
    } else if (dial.is_shared()) {
      channel.segment = dial.take_segment();
      channel.is_creator = true;
      channel.bell = dial.take_fd();
      channel.shelf = dial.take_shelf();
    } else {
      os::UniqueFd& fd =
          dial.connection() == 0 ? channel.tcp.control : channel.tcp.out[dial.connection() - 1];
      fd = dial.take_fd();
      tune_tcp(fd.get(), options_.peer_timeout.value, dial.connection() == 0);
    }
    return true;
  });
  for (const int peer : without_memory)
    call(peer, false);
}

// Why a caller may not come in.
std::string Bootstrap::judge(const Hello& hello) const {
  if (hello.token != options_.job_token) return "its job token is wrong";
  if (hello.world_size != static_cast<std::uint32_t>(world_size_))
    return "it counts " + std::to_string(hello.world_size) + " ranks, not " +
           std::to_string(world_size_);
  if (hello.meeting != plan_.meeting) return "it means another meeting of these ranks";
  // Lower ranks come for data only.
  const bool is_data = hello.connections != 0 && hello.connection != 0;
  const auto own_rank = static_cast<std::uint32_t>(rank_);
  if (hello.rank >= hello.world_size || hello.rank == own_rank ||
      (hello.rank < own_rank && !is_data))
    return "rank " + std::to_string(hello.rank) + " has no business here";
  const Channel& channel = channels_[hello.rank];
  constexpr std::uint32_t kDialledMax = kConnectionsMax + 1;  // one for control
  if (hello.connections == 0) return channel.segment ? "its place is taken" : "";
  if (channel.uses_rdma != (hello.connections == 1))
    return channel.uses_rdma ? "it wants TCP where this rank wants RDMA"
                             : "it wants RDMA where this rank wants TCP";
  if (channel.uses_rdma && hello.connection == 0)
    return channel.tcp.control ? "its place is taken" : "";
  if (hello.connections < 2 || hello.connections > kDialledMax ||
      hello.connection >= hello.connections)
    return "its connection count is wrong";
  if (!is_data) return channel.tcp.control ? "its place is taken" : "";
  if (channel.tcp.in.empty()) return "";
  if (channel.tcp.in.size() != hello.connections - 1) return "its connection count changed";
  return channel.tcp.in[hello.connection - 1] ? "its place is taken" : "";
}

void Bootstrap::serve_door(Seconds now) {
  const auto judge_hello = [this](const Hello& hello) { return judge(hello); };
  for (Arrival& arrival : door_.serve(now, ready_, judge_hello)) {
    Channel& channel = channels_[arrival.hello.rank];
    if (arrival.segment) {
      channel.segment = std::move(arrival.segment);
      channel.bell = std::move(arrival.fd);
      channel.shelf = std::move(arrival.shelf);
    } else {
      tune_tcp(arrival.fd.get(), options_.peer_timeout.value, arrival.hello.connection == 0);
      channel.tcp.in.resize(arrival.hello.connections - 1);
      if (arrival.hello.connection == 0) {
        const bool is_again = static_cast<bool>(channel.tcp.control);
        channel.tcp.control = std::move(arrival.fd);
        if (!is_again) survey(static_cast<int>(arrival.hello.rank));
      } else {
        channel.tcp.in[arrival.hello.connection - 1] = std::move(arrival.fd);
      }
    }
  }
}

void Bootstrap::wait(Seconds limit) {
  std::vector<pollfd> fds;
  door_.add_poll_fds(fds);
  for (const Dial& dial : dials_)
    if (dial.poll_fd() >= 0)
      fds.push_back(
          {dial.poll_fd(), static_cast<short>(dial.wants_to_write() ? POLLOUT : POLLIN), 0});
  for (const auto& survey : surveys_)
    survey->add_poll_fds(fds);
  for (const Channel& channel : channels_)
    if (const int fd = hang_up_fd(channel); fd >= 0) fds.push_back({fd, POLLRDHUP, 0});
  ready_.wait(fds, std::clamp(limit, Seconds{0.0}, kPollTime));
}

std::vector<int> Bootstrap::missing() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < world_size_; ++peer) {
    const Channel& channel = channels_[static_cast<std::size_t>(peer)];
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
                              format_seconds(meeting_patience(options_)) +
                              "; see whether it runs and can be reached"};
}

// Whether all can still come: those that are connected live, the others have a door.
Status Bootstrap::look_after(const std::vector<int>& absent, Seconds now) {
  for (int peer = 0; peer < world_size_; ++peer) {
    Channel& channel = channels_[static_cast<std::size_t>(peer)];
    const int fd = hang_up_fd(channel);
    if (fd < 0 || !ready_.has(fd)) continue;
    if (const auto reason = read_farewell(channel)) return *reason;
    return Error{Code::kUnavailable,
                 name(peer) + ": connection lost while the ranks were connecting"};
  }
  for (const int peer : absent) {
    if (knocks_.size() == kKnocksAtOnce) break;
    const auto is_of_peer = [&](const Knock& knock) { return knock.peer() == peer; };
    if (std::any_of(knocks_.begin(), knocks_.end(), is_of_peer)) continue;
    const Endpoint& to = endpoints_[static_cast<std::size_t>(peer)];
    knocks_.emplace_back(peer, to, options_.listen_address, to.server == options_.server);
  }
  std::erase_if(knocks_, [&](const Knock& knock) {
    return hang_up_fd(channels_[static_cast<std::size_t>(knock.peer())]) >= 0;
  });
  for (Knock& knock : knocks_)
    if (knock.finds_it_gone(now))
      return Error{Code::kUnavailable,
                   name(knock.peer()) + ": nobody answers at its address: its process has ended"};
  return {};
}

Error Bootstrap::give_up(const Error& error) {
  for (Channel& channel : channels_)
    say_farewell(channel, error);
  return error;
}

Result<Meeting> Bootstrap::meet_all() {
  const Seconds deadline = os::monotonic_now() + meeting_patience(options_);
  for (std::vector<int> absent = missing(); !absent.empty(); absent = missing()) {
    const Seconds now = os::monotonic_now();
    if (now >= deadline) return give_up(describe_missing(absent));
    if (plan_.is_off && plan_.is_off())
      return give_up({Code::kUnavailable, "another rank gave the meeting up"});
    const Status all_well = look_after(absent, now);
    if (!all_well) return give_up(all_well.error());
    serve_door(now);
    serve_surveys(now);
    serve_dials(now);
    if (!missing().empty()) wait(deadline - now);
  }
  shelf_.close_fd();
  Meeting meeting{.channels = std::move(channels_),
                  .names = {},
                  .endpoints = endpoints_,
                  .shelf = std::move(shelf_),
                  .ways = ways_,
                  .rdma = std::move(rdma_)};
  meeting.names.reserve(endpoints_.size());
  for (int peer = 0; peer < world_size_; ++peer)
    meeting.names.push_back(name(peer));
  return meeting;
}

std::string Bootstrap::name(int peer) const {
  const std::string& server = endpoints_[static_cast<std::size_t>(peer)].server;
  return name_of(peer, options_) + (server.empty() ? "" : " at " + server);
}

// A closed one where it cannot be had: collectives inside a server then go by messages.
Shelf make_shelf() {
  auto shelf = Shelf::create();
  if (shelf) return std::move(*shelf);
  log_warning("coll: collectives inside the server will be slow: " + shelf.error().message);
  return {};
}

}  // namespace

std::string name_of(int rank, const Options& options) {
  const auto index = static_cast<std::size_t>(rank);
  return index < options.rank_names.size() ? options.rank_names[index]
                                           : "rank " + std::to_string(rank);
}

namespace {

// Null where RDMA is not used; an error where it has to be. `host`: whose device it is, for
// messages.
Result<std::shared_ptr<VerbsDevice>> open_rdma(const std::string& host, const Options& options) {
  if (options.rdma == Rdma::kOff) return std::shared_ptr<VerbsDevice>();
  auto device = open_verbs(options.listen_address);
  if (device) return device;
  const std::string why = host + ": " + device.error().message;
  if (options.rdma == Rdma::kRequired) return Error{device.error().code, why};
  // Most machines have no device; one that is there and cannot be used is worth a word.
  if (device.error().code != Code::kUnsupported && device.error().code != Code::kInvalidInput)
    log_warning("coll: TCP is used instead of RDMA: " + why);
  return std::shared_ptr<VerbsDevice>();
}

}  // namespace

Seconds meeting_patience(const Options& options) {
  return options.peer_timeout + kPatience;
}

Result<Entrance> open_entrance(const std::string& host, bool has_shelf, const Options& options) {
  if (options.job_token.size() > kTokenBytesMax)
    return Error{Code::kInvalidInput, "the job token is longer than " +
                                          std::to_string(kTokenBytesMax) + " bytes: shorten it"};
  REGATTA_TRY(rdma, open_rdma(host, options));
  Shelf shelf = has_shelf ? make_shelf() : Shelf();
  REGATTA_TRY(door, Door::open(host, options.listen_address, shelf.fd()));
  std::string endpoint = format_endpoint({.address = options.listen_address,
                                          .port = door.port(),
                                          .unix_name = door.unix_name(),
                                          .link_rate = options.link_rate,
                                          .has_rdma = rdma != nullptr,
                                          .server = options.server});
  return Entrance{std::move(shelf), std::move(door), std::move(rdma), std::move(endpoint)};
}

Result<Meeting> meet(Entrance entrance, const MeetingPlan& plan, const Options& options) {
  Bootstrap bootstrap(std::move(entrance), plan, options);
  REGATTA_TRY_DO(bootstrap.read_endpoints());
  return bootstrap.meet_all();
}

Result<Meeting> meet(int rank, int world_size, const Exchange& exchange, const Options& options) {
  REGATTA_TRY(entrance, open_entrance(name_of(rank, options), world_size > 1, options));
  REGATTA_TRY(texts, exchange(entrance.endpoint));
  if (texts.size() != static_cast<std::size_t>(world_size))
    return Error{Code::kInvalidInput, "the exchange gave " + std::to_string(texts.size()) +
                                          " endpoints for " + std::to_string(world_size) +
                                          " ranks: give one for each rank, in rank order"};
  const MeetingPlan plan{.rank = rank, .endpoints = std::move(texts), .is_off = {}};
  return meet(std::move(entrance), plan, options);
}

}  // namespace regatta::comm
