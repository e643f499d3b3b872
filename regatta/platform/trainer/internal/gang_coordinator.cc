#include "regatta/platform/trainer/internal/gang_coordinator.h"

#include <cstdio>
#include <ctime>
#include <filesystem>
#include <map>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/random.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/net/line_server.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/trainer/gang_plan.h"
#include "regatta/platform/trainer/internal/checkpoint_manifest.h"
#include "regatta/platform/trainer/internal/step_metrics.h"

namespace regatta::trainer {
namespace {

constexpr Seconds kTick{0.1};
constexpr Seconds kJoinLimit{120};
constexpr std::size_t kLineMost = std::size_t{4} << 20;

std::string random_token() {
  unsigned char bytes[16] = {};
  std::size_t filled = 0;
  while (filled < sizeof bytes) {
    const ssize_t got = ::getrandom(bytes + filled, sizeof bytes - filled, 0);
    if (got > 0) filled += static_cast<std::size_t>(got);
  }
  std::string text;
  for (const unsigned char byte : bytes)
    text += fmt::format("{:02x}", byte);
  return text;
}

std::int64_t unix_ms() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1000 + now.tv_nsec / 1'000'000;
}

void print_line(const std::string& line) {
  std::fputs((line + '\n').c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace

struct GangCoordinator::Impl {
  Impl(CoordinatorOptions given, net::LineServer made)
      : options(std::move(given)), server(std::move(made)), metrics(options.world_size) {
    ranks.resize(static_cast<std::size_t>(options.world_size));
  }

  struct RankState {
    std::optional<net::ClientId> client;
    GangMember member;
    std::optional<std::string> endpoint;
    bool has_ended = false;
  };

  Status on_line(net::ClientId client, std::string_view line);
  Status join(net::ClientId client, std::string_view line);
  Status on_event(int member, std::string_view line);
  Status begin();
  void send_peers();
  void write_metrics(const std::string& lines) const;
  void on_step(const TrainedStep& step) const;
  int training_rank(int member) const { return at(rank_of_member, member); }
  void fail(Error error) {
    if (!failure) failure = std::move(error);
  }

  CoordinatorOptions options;
  net::LineServer server;
  StepMetrics metrics;
  std::vector<RankState> ranks;  // of the platform
  std::map<net::ClientId, int> member_of;
  std::vector<int> rank_of_member;
  std::vector<int> member_of_rank;
  int joined = 0;
  int ended = 0;
  bool has_peers = false;
  std::optional<Error> failure;
};

Status GangCoordinator::Impl::on_line(net::ClientId client, std::string_view line) {
  const auto known = member_of.find(client);
  Status done;
  try {
    done = known == member_of.end() ? join(client, line) : on_event(known->second, line);
  } catch (const nlohmann::json::exception&) {  // a value of another kind
    done = Error{Code::kInvalidInput, "a rank has sent what no rank sends"};
  }
  // A stranger's mistake ends its connection alone.
  if (!done && known != member_of.end()) fail(done.error());
  return done;
}

Status GangCoordinator::Impl::join(net::ClientId client, std::string_view line) {
  const nlohmann::json hello = nlohmann::json::parse(line, nullptr, false);
  if (!hello.is_object() || hello.value("gang", "") != options.gang)
    return Error{Code::kInvalidInput, "a rank of another gang has connected"};
  REGATTA_TRY(member, parse_member(line));
  if (member.rank >= options.world_size || at(ranks, member.rank).client)
    return Error{Code::kConflict, fmt::format("rank {} comes twice or not at all", member.rank)};
  member_of[client] = member.rank;
  RankState& state = at(ranks, member.rank);
  state.client = client;
  state.member = std::move(member);
  if (++joined < options.world_size) return {};
  if (Status begun = begin(); !begun) fail(begun.error());
  return {};
}

// All ranks are there.
Status GangCoordinator::Impl::begin() {
  std::vector<GangMember> members;
  for (const RankState& state : ranks)
    members.push_back(state.member);
  const auto manifest = newest_manifest(options.job.checkpoint.folder);
  REGATTA_TRY(plan, plan_gang(options.job, members, manifest ? manifest->text : ""));
  const nlohmann::json predicted = prediction_json(plan, options.job);
  print_line(fmt::format("{}: {} ranks, plan {}, {}; predicted: a step of {:.3g} s, {:.3g} MiB",
                         options.job.name, options.world_size,
                         workload::to_string(plan.plan.strategy), plan.plan.placement_name,
                         plan.plan.prediction.step_time.value,
                         static_cast<double>(plan.plan.prediction.memory.total().value) / 1048576));
  if (manifest)
    print_line(fmt::format("{}: continues after step {} from {}", options.job.name, manifest->step,
                           options.job.checkpoint.folder));
  write_metrics(nlohmann::json{{"predicted", predicted}}.dump() + '\n');
  member_of_rank = plan.member_of_rank;
  rank_of_member.resize(ranks.size());
  for (std::size_t rank = 0; rank < member_of_rank.size(); ++rank)
    at(rank_of_member, member_of_rank[rank]) = static_cast<int>(rank);
  const auto specs = worker_specs(plan, options.job, members, random_token());
  for (std::size_t i = 0; i < ranks.size(); ++i)
    if (!server.send(*ranks[i].client, specs[i].dump() + '\n'))
      return Error{Code::kUnavailable, fmt::format("rank {}: its connection ended", i)};
  return {};
}

void GangCoordinator::Impl::send_peers() {
  nlohmann::json peers = nlohmann::json::array();
  for (const int member : member_of_rank) {
    if (!at(ranks, member).endpoint) return;
    peers.push_back(*at(ranks, member).endpoint);
  }
  has_peers = true;
  const std::string line = nlohmann::json{{"peers", std::move(peers)}}.dump() + '\n';
  for (const RankState& state : ranks)
    server.send(*state.client, line);
}

Status GangCoordinator::Impl::on_event(int member, std::string_view line) {
  RankState& state = at(ranks, member);
  const nlohmann::json event = nlohmann::json::parse(line, nullptr, false);
  const std::string kind = event.is_object() ? event.value("event", "") : "";
  if (kind.empty())
    return Error{Code::kInvalidInput, fmt::format("rank {}: a line is no event", member)};
  if (kind == "endpoint") {
    state.endpoint = event.value("text", "");
    send_peers();
  } else if (kind == "error") {
    return Error{Code::kUnavailable, fmt::format("rank {} (node {}): {}", member, state.member.node,
                                                 printable(event.value("message", ""), 500))};
  } else if (kind == "exit") {
    const int status = event.value("status", 1);
    if (status != 0)
      return Error{Code::kUnavailable, fmt::format("rank {} (node {}): its worker ended with {}",
                                                   member, state.member.node, status)};
    if (!std::exchange(state.has_ended, true)) ++ended;
  } else if (has_peers) {
    REGATTA_TRY(step, metrics.add(training_rank(member), event));
    if (step) on_step(*step);
  }
  return {};
}

void GangCoordinator::Impl::on_step(const TrainedStep& step) const {
  print_line(fmt::format("step {}/{}: loss {:.4f}, {:.3g} s, {:.0f} tokens/s", step.step + 1,
                         options.job.steps, step.loss, step.time_s, step.tokens_per_s));
  write_metrics(metric_lines(step, metrics.resident_bytes(), unix_ms()));
}

// A loss of metrics does not end a training.
void GangCoordinator::Impl::write_metrics(const std::string& lines) const {
  if (options.metrics_file.empty()) return;
  const os::UniqueFd file(::open(options.metrics_file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file) static_cast<void>(::write(file.get(), lines.data(), lines.size()) < 0);
}

GangCoordinator::GangCoordinator(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
GangCoordinator::GangCoordinator(GangCoordinator&&) noexcept = default;
GangCoordinator& GangCoordinator::operator=(GangCoordinator&&) noexcept = default;
GangCoordinator::~GangCoordinator() = default;

Result<GangCoordinator> GangCoordinator::listen(CoordinatorOptions options) {
  REGATTA_TRY(listener, os::listen_tcp(options.listen));
  if (::fcntl(listener.get(), F_SETFL, O_NONBLOCK) != 0) return os::errno_error("listen");
  REGATTA_TRY(server, net::LineServer::create(
                          std::move(listener),
                          {.clients_max = static_cast<std::size_t>(options.world_size) + 16,
                           .line_max = kLineMost,
                           .refusal = {},
                           .first_line_limit = Seconds{30}}));
  return GangCoordinator(std::make_unique<Impl>(std::move(options), std::move(server)));
}

Status GangCoordinator::run(const std::atomic<bool>& stop) {
  Impl& self = *impl_;
  const net::LineHandlers handlers{
      .connected = [](net::ClientId, int fd) { os::enable_keepalive(fd); },
      .line = [&](net::ClientId client,
                  std::string_view line) { return self.on_line(client, line); },
      .closed =
          [&](net::ClientId client, const Status&) {
            const auto known = self.member_of.find(client);
            if (known == self.member_of.end() || at(self.ranks, known->second).has_ended) return;
            self.fail({Code::kUnavailable,
                       fmt::format("rank {} (node {}): its connection ended", known->second,
                                   at(self.ranks, known->second).member.node)});
          }};
  const Seconds give_up = os::monotonic_now() + kJoinLimit;
  while (self.ended < self.options.world_size && !stop) {
    REGATTA_TRY_DO(self.server.serve(kTick, handlers));
    if (!self.failure && !self.has_peers && os::monotonic_now() > give_up)
      self.fail({Code::kTimeout, fmt::format("{} of {} ranks have joined after {:g} s", self.joined,
                                             self.options.world_size, kJoinLimit.value)});
    if (!self.failure) continue;
    self.server.send_to_all(nlohmann::json{{"gang_error", self.failure->message}}.dump() + '\n');
    return *self.failure;
  }
  return {};
}

}  // namespace regatta::trainer
