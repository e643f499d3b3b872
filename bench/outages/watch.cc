#include "watch.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>

#include <netinet/in.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/un.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/model/topo/addresses.h"

namespace regatta::outages {
namespace {

constexpr std::int64_t kPeriod = 10'000'000;
constexpr std::int64_t kLate = 5'000'000;
constexpr int kMisses = 3;
constexpr int kAgain = 10;  // rounds after which what is still broken is told again

}  // namespace

Result<std::unique_ptr<Watch>> Watch::start(const LabNet& net, const std::string& socket) {
  std::unique_ptr<Watch> watch(new Watch(net));
  REGATTA_TRY_DO(watch->connect(socket));
  REGATTA_TRY_DO(watch->open_flows());
  watch->thread_ = std::thread([one = watch.get()] { one->run(); });
  return watch;
}

Watch::~Watch() {
  stop_ = true;
  if (thread_.joinable()) thread_.join();
}

Status Watch::connect(const std::string& path) {
  healer_.reset(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::strncpy(name.sun_path, path.c_str(), sizeof name.sun_path - 1);
  if (::connect(healer_.get(), reinterpret_cast<const sockaddr*>(&name), sizeof name) != 0)
    return os::errno_error(path);
  return {};
}

Status Watch::open_flows() {
  const int servers = static_cast<int>(net_.lab.servers.size());
  std::set<std::pair<NodeId, NodeId>> done;
  std::uint16_t port = 21000;
  for (int from = 0; from < servers; ++from) {
    for (int to = 0; to < servers; ++to) {
      const std::pair pair{net_.leaf_of(from), net_.leaf_of(to)};
      if (pair.first == pair.second || !done.insert(pair).second) continue;
      std::set<std::vector<std::uint32_t>> paths;
      for (int tries = 0; tries < 400; ++tries) {
        Flow flow;
        flow.from = from;
        flow.to = to;
        flow.tuple = {.from = topo::address_of(topo::nic_link(net_.graph, ServerId{from}, 0)),
                      .to = topo::address_of(topo::nic_link(net_.graph, ServerId{to}, 0)),
                      .to_port = port};
        auto found = find_flow(net_, std::move(flow), 25000,
                               [&](const auto& way) { return !paths.contains(way); });
        if (!found) break;
        ++port;
        paths.insert(found->way);
        REGATTA_TRY_DO(open_sockets(net_, *found));
        const int tos = topo::kProbeTos;
        ::setsockopt(found->sender.get(), IPPROTO_IP, IP_TOS, &tos, sizeof tos);
        flows_.push_back(std::move(*found));
      }
    }
  }
  REGATTA_TRY(control, open_control(net_, 20000));
  flows_.push_back(std::move(control));
  seen_.assign(flows_.size(), 0);
  misses_.assign(flows_.size(), 0);
  return {};
}

void Watch::run() {
  take_priority();
  const std::array<char, 4> text = {'p', 'i', 'n', 'g'};
  std::uint32_t round = 0;
  std::array<std::uint32_t, 2> packet{};
  std::memcpy(&packet[1], text.data(), sizeof packet[1]);
  std::int64_t next = now_ns();
  while (!stop_) {
    next = std::max(next + kPeriod, now_ns());
    sleep_until(next);
    const bool is_late = now_ns() - next > kLate;
    if (round > 0 && !is_late) look(round);
    if (is_late) std::ranges::fill(misses_, 0);
    packet[0] = ++round;
    for (const Flow& flow : flows_)
      static_cast<void>(::send(flow.sender.get(), packet.data(), sizeof packet, MSG_DONTWAIT) > 0);
  }
}

void Watch::look(std::uint32_t round) {
  std::array<std::uint32_t, 2> packet{};
  for (std::size_t i = 0; i < flows_.size(); ++i)
    while (::recv(flows_[i].receiver.get(), packet.data(), sizeof packet, MSG_DONTWAIT) > 0)
      seen_[i] = packet[0];
  if (seen_.back() != round || paused_) {
    std::ranges::fill(misses_, 0);
    return;
  }
  std::vector<std::size_t> missing;
  bool is_new = false;
  for (std::size_t i = 0; i + 1 < flows_.size(); ++i) {
    misses_[i] = seen_[i] == round ? 0 : misses_[i] + 1;
    if (misses_[i] < kMisses) continue;
    is_new = is_new || (misses_[i] - kMisses) % kAgain == 0;
    missing.push_back(i);
  }
  if (is_new) report(missing);
}

// The one switch that all missing ways share and no way that is well; else their first hops.
void Watch::report(const std::vector<std::size_t>& missing) {
  const auto goes_through = [&](std::size_t flow, NodeId node) {
    return std::ranges::any_of(flows_[flow].way, [&](std::uint32_t link) {
      return net_.paths.end_of[link] == node && net_.paths.start_of[link] != node;
    });
  };
  std::vector<nlohmann::json> broken;
  for (int n = static_cast<int>(net_.graph.nodes.size()) - 1; n >= 0 && broken.empty(); --n) {
    const NodeId node{n};
    if (net_.graph.nodes[node.index()].kind == topo::NodeKind::kServer) break;
    bool fits = true;
    for (std::size_t i = 0; i + 1 < flows_.size() && fits; ++i) {
      const bool is_missing = misses_[i] >= kMisses;
      const bool is_open = misses_[i] > 0 && !is_missing;  // it may have passed just in time before
      fits = is_open || goes_through(i, node) == is_missing;
    }
    if (fits) broken.push_back({{"switch", net_.graph.nodes[node.index()].name}});
  }
  for (std::size_t k = 0; k < missing.size() && (broken.empty() || !broken[0].contains("switch"));
       ++k) {
    const Flow& flow = flows_[missing[k]];
    const std::uint32_t hop = flow.way[1];
    broken.push_back({{"link", net_.graph.links[hop / 2].name},
                      {"from", net_.graph.nodes[net_.paths.start_of[hop].index()].name},
                      {"towards", net_.graph.nodes[net_.leaf_of(flow.to).index()].name}});
  }
  std::string lines;
  for (const nlohmann::json& one : broken)
    lines += nlohmann::json{{"broken", one}, {"why", "3 probes in a row lost"}}.dump() + "\n";
  static_cast<void>(::send(healer_.get(), lines.data(), lines.size(), MSG_NOSIGNAL) > 0);
  std::array<char, 65536> rest;  // events: of no use here, but they must not pile up
  while (::recv(healer_.get(), rest.data(), rest.size(), MSG_DONTWAIT) > 0) {
  }
  ++reports_;
}

}  // namespace regatta::outages
