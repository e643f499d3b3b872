#include "bench/platform_scale/agent_fleet.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <map>
#include <optional>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/http/web_socket_client.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/node_agent/agent_core.h"
#include "regatta/platform/node_agent/internal/controller_link.h"
#include "regatta/platform/node_agent/internal/lease_file.h"
#include "regatta/platform/node_agent/internal/node_identity.h"
#include "regatta/platform/node_agent/internal/precedence.h"
#include "regatta/platform/node_protocol/controller_message.h"
#include "regatta/platform/node_protocol/node_message.h"
#include "regatta/platform/packing/random_sequence.h"

namespace regatta::bench {
namespace {

constexpr int kSlots = 20;  // heartbeats of a second are spread over so many moments
constexpr Seconds kSecond{1};
constexpr Seconds kCertificateLifetime{7 * 86400.0};

Seconds boot_now() {
  return Seconds{static_cast<double>(node_agent::boottime_ns()) / 1e9};
}

struct FleetAgent {
  explicit FleetAgent(std::string its_name, std::uint32_t seed)
      : name(std::move(its_name)), core(node_agent::kFirstLease, {}, boot_now()), pause(seed) {}

  std::string name;
  node_agent::AgentCore core;
  node_agent::ReconnectPause pause;
  std::string certificate;
  std::unique_ptr<http::WebSocket> socket;
  std::int64_t connection = 0;  // its number: handlers of earlier ones do nothing
  bool is_welcome = false;
  bool is_dead = false;
  std::int64_t sequence = 0;
};

}  // namespace

struct AgentFleet::Impl {
  explicit Impl(FleetOptions given) : options(std::move(given)), random(options.seed) {
    for (int i = 0; i < options.nodes; ++i) {
      agents.emplace_back(name_of(i), static_cast<std::uint32_t>(i + 1));
      waiting.push_back(i);
    }
  }

  FleetAgent& agent(int node) { return agents[static_cast<std::size_t>(node)]; }

  void connect_next() {
    while (connecting < options.connecting_max && !waiting.empty()) {
      const int node = waiting.front();
      waiting.pop_front();
      ++connecting;
      connect(node);
    }
  }

  void connect(int node) {
    FleetAgent& one = agent(node);
    const auto now = static_cast<std::int64_t>(os::system_now().value);
    if (one.certificate.empty()) {
      auto certificate = tls::sign_request(
          options.authority, node_key->request,
          {.common_name = one.name, .hosts = {}, .uris = {node_agent::node_uri(one.name)}}, now,
          kCertificateLifetime);
      if (certificate) one.certificate = std::move(*certificate);
    }
    http::ClientOptions client;
    client.url = options.url;
    client.ca = options.authority.certificate;
    client.certificate_chain = one.certificate;
    client.private_key = node_key->private_key;
    client.connect_limit = Seconds{30};
    http::connect_web_socket(loop, client, "/v1/nodes/connect", {}, [this, node](auto socket) {
      --connecting;
      if (socket && !agent(node).is_dead)
        use(node, std::move(*socket));
      else
        again(node);
      connect_next();
    });
  }

  void again(int node) {
    if (agent(node).is_dead) return;
    loop.after(agent(node).pause.next(), [this, node] {
      waiting.push_back(node);
      connect_next();
    });
  }

  void use(int node, std::unique_ptr<http::WebSocket> socket) {
    FleetAgent& one = agent(node);
    one.socket = std::move(socket);
    const std::int64_t number = ++one.connection;
    one.socket->on_closed([this, node, number] {
      loop.post([this, node, number] {
        if (agent(node).connection == number && agent(node).socket != nullptr) close(node);
      });
    });
    one.socket->on_message([this, node](std::string_view bytes) { receive(node, bytes); });
    node_protocol::NodeHello hello;
    hello.capabilities = {"replica_leases"};
    hello.facts.name = one.name;
    hello.facts.device_type = "h100-sxm";
    hello.facts.devices = options.devices;
    hello.facts.device_memory_mib = 81920;
    hello.facts.cpu_milli = 192000;
    hello.facts.memory_mib = 2 << 20;
    hello.facts.leaf = node / 32;
    hello.facts.group = node / 512;
    hello.address = one.name;
    hello.journal_id = one.name;
    hello.boot_id = one.name;
    hello.sent_ns = node_agent::boottime_ns();
    send(node, hello);
    count([](FleetCounts& all) { ++all.connections; });
  }

  void close(int node) {
    FleetAgent& one = agent(node);
    one.socket.reset();
    if (std::exchange(one.is_welcome, false)) count([](FleetCounts& all) { --all.connected; });
    again(node);
  }

  void send(int node, const node_protocol::NodeMessage& message) {
    if (agent(node).socket != nullptr) agent(node).socket->send(node_protocol::encode(message));
  }

  void receive(int node, std::string_view bytes) {
    FleetAgent& one = agent(node);
    if (one.is_dead) return;
    const auto message = node_protocol::decode_controller_message(bytes);
    if (!message) return;
    const auto sent = [](std::int64_t ns) { return Seconds{static_cast<double>(ns) / 1e9}; };
    if (const auto* welcome = std::get_if<node_protocol::NodeWelcome>(&*message)) {
      one.core.answered(sent(welcome->sent_ns));
      one.core.welcomed(welcome->lease);
      one.pause.reset();
      one.is_welcome = true;
      count([](FleetCounts& all) { ++all.connected; });
      send(node,
           node_protocol::NodeReports{.is_complete = true, .reports = one.core.complete_report()});
      beat(node);
    } else if (const auto* answer = std::get_if<node_protocol::HeartbeatAnswer>(&*message)) {
      one.core.answered(sent(answer->sent_ns));
    } else if (const auto* extension = std::get_if<node_protocol::LeaseExtension>(&*message)) {
      one.core.keep_until(sent(extension->sent_ns) + extension->lease);
    } else if (const auto* orders = std::get_if<node_protocol::NodeOrders>(&*message)) {
      for (const control::ReplicaOrder& order : orders->orders)
        one.core.obey(order, boot_now());
      act(node);
    }
  }

  void beat(int node) {
    FleetAgent& one = agent(node);
    send(node, node_protocol::NodeHeartbeat{.sent_ns = node_agent::boottime_ns(),
                                            .sequence = ++one.sequence});
  }

  void act(int node) {
    FleetAgent& one = agent(node);
    for (;;) {
      const node_agent::AgentActions actions = one.core.take_actions();
      for (const control::ReplicaOrder& order : actions.starts)
        start(node, order.key);
      for (const control::ReplicaKey& key : actions.stops)
        one.core.ended(key, 0, 15, false);
      for (const control::ReplicaKey& key : actions.kills)
        one.core.ended(key, 0, 9, true);
      if (!actions.kills.empty())
        count([&](FleetCounts& all) {
          all.lease_ends += static_cast<long long>(actions.kills.size());
        });
      if (one.is_welcome && !actions.reports.empty())
        send(node, node_protocol::NodeReports{.is_complete = false, .reports = actions.reports});
      if (actions.stops.empty() && actions.kills.empty()) return;
    }
  }

  void start(int node, const control::ReplicaKey& key) {
    {
      MutexLock lock(mutex);
      ++all_counts.started;
      const auto lost = lost_jobs.find(key.job);
      if (lost != lost_jobs.end() && key.attempt > lost->second.first) {
        ++deaths.placed_again;
        deaths.last_placed =
            std::max(deaths.last_placed, os::monotonic_now() - lost->second.second);
        lost_jobs.erase(lost);
      }
    }
    const Seconds time = options.job_time * -std::log(1 - random.uniform());
    loop.after(time, [this, node, key] {
      if (agent(node).is_dead) return;
      count([](FleetCounts& all) { ++all.ended; });
      agent(node).core.ended(key, 0, 0, false);
      act(node);
    });
  }

  // One moment of a second: heartbeats of some agents, and their leases.
  void beat_slot(int slot) {
    for (int node = slot; node < options.nodes; node += kSlots) {
      FleetAgent& one = agent(node);
      if (one.is_dead) continue;
      if (one.is_welcome) beat(node);
      one.core.tick(boot_now());
      act(node);
    }
    next_slot += kSecond * (1.0 / kSlots);
    loop.after(std::max(Seconds{0}, next_slot - os::monotonic_now()),
               [this, slot] { beat_slot((slot + 1) % kSlots); });
  }

  void kill(int node) {
    FleetAgent& one = agent(node);
    if (std::exchange(one.is_dead, true)) return;
    MutexLock lock(mutex);
    for (const control::ReplicaKey& key : one.core.started()) {
      ++deaths.jobs;
      lost_jobs[key.job] = {key.attempt, os::monotonic_now()};
    }
  }

  template <typename Change>
  void count(Change change) REGATTA_EXCLUDES(mutex) {
    MutexLock lock(mutex);
    change(all_counts);
  }

  const FleetOptions options;
  // One key for all, which saves time and takes no part in what is measured.
  const Result<tls::SigningRequest> node_key =
      tls::create_request({.common_name = "fleet", .hosts = {}, .uris = {}});
  packing::RandomSequence random;
  http::EventLoop loop;
  std::deque<FleetAgent> agents;
  std::deque<int> waiting;  // for a connection
  int connecting = 0;
  Seconds next_slot = os::monotonic_now();
  std::thread thread;

  mutable Mutex mutex;
  FleetCounts all_counts REGATTA_GUARDED_BY(mutex);
  DeathReport deaths REGATTA_GUARDED_BY(mutex);
  // Attempts that ran on servers that died, and when that was.
  std::map<control::JobId, std::pair<int, Seconds>> lost_jobs REGATTA_GUARDED_BY(mutex);
};

AgentFleet::AgentFleet(FleetOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {
  impl_->loop.post([impl = impl_.get()] {
    impl->connect_next();
    impl->beat_slot(0);
  });
  impl_->thread = os::signal_masked_thread([impl = impl_.get()] { impl->loop.run(); });
}

AgentFleet::~AgentFleet() {
  impl_->loop.stop();
  impl_->thread.join();
  impl_->agents.clear();
}

void AgentFleet::run_before_others() {
  impl_->loop.post([] { node_agent::run_before_others(); });
}

std::string AgentFleet::name_of(int node) {
  return fmt::format("n{:05}", node);
}

FleetCounts AgentFleet::counts() const {
  MutexLock lock(impl_->mutex);
  return impl_->all_counts;
}

void AgentFleet::kill(int node) {
  impl_->loop.post([impl = impl_.get(), node] { impl->kill(node); });
}

DeathReport AgentFleet::death_report() const {
  MutexLock lock(impl_->mutex);
  return impl_->deaths;
}

}  // namespace regatta::bench
