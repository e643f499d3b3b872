#include "bench/platform_proofs/recorded_history.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <optional>
#include <random>
#include <string_view>
#include <thread>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/text.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/os/clock.h"

namespace regatta::platform_proofs {
namespace {

using nlohmann::json;

constexpr std::size_t kJobsAtOnce = 12;
constexpr std::uint32_t kOperationsOfAJob = 60;
constexpr Seconds kReturnLimit{60};
constexpr std::array<std::string_view, 3> kIntents = {"in_use", "cordoned", "draining"};

// The jobs that the clients work on now.
class SharedJobs {
 public:
  struct Pick {
    std::uint32_t job;
    std::int64_t id;  // 0: nobody has been told yet
  };
  Pick pick(std::uint64_t random) {
    MutexLock lock(mutex_);
    Entry& entry = entries_[random % kJobsAtOnce];
    if (entry.used == 0 || entry.used == kOperationsOfAJob) entry = {.job = next_++};
    ++entry.used;
    return {entry.job, entry.id};
  }
  void learn(std::uint32_t job, std::int64_t id) {
    MutexLock lock(mutex_);
    for (Entry& entry : entries_)
      if (entry.job == job) entry.id = id;
  }

 private:
  struct Entry {
    std::uint32_t job = 0;
    std::uint32_t used = 0;
    std::int64_t id = 0;
  };
  Mutex mutex_;
  std::array<Entry, kJobsAtOnce> entries_ REGATTA_GUARDED_BY(mutex_);
  std::uint32_t next_ REGATTA_GUARDED_BY(mutex_) = 0;
};

std::int64_t number_of(const json& value) {
  return parse_number<std::int64_t>(value.get<std::string>()).value_or(-1);
}

JobFields fields_of(const json& job) {
  return {.id = number_of(job.at("id")),
          .revision = number_of(job.at("rev")),
          .priority = job.at("priority").get<std::int32_t>(),
          .is_held = job.at("status").at("held").get<bool>(),
          .is_cancelled = job.at("status").at("phase") == "cancelled"};
}

std::uint32_t job_of_name(const json& job) {
  return parse_number<std::uint32_t>(job.at("name").get<std::string>().substr(1)).value_or(0);
}

class RecordingClient {
 public:
  RecordingClient(const PlatformPrograms& programs, SharedJobs& jobs, std::uint64_t seed)
      : options_(programs.client_options()),
        headers_(programs.admin_headers()),
        jobs_(jobs),
        random_(seed) {}

  void run(std::atomic<std::int64_t>& left) {
    while (left.fetch_sub(1) > 0 && history_.error.empty()) {
      const std::uint64_t kind = random_() % 100;
      if (kind < 5)
        list_jobs();
      else if (kind < 15)
        work_on_intents();
      else
        work_on_job();
    }
  }
  RecordedHistory take() { return std::move(history_); }

 private:
  // Nothing: no answer came. Then it waits until the controller serves again, so that few requests
  // are in the history of which nobody knows.
  std::optional<http::Response> send(const std::string& method, const std::string& target,
                                     http::Headers more = {}, const std::string& body = "") {
    if (client_ == nullptr && !connect()) return std::nullopt;
    more.insert(more.end(), headers_.begin(), headers_.end());
    called_ns_ = steady_ns();
    auto response = client_->send(method, target, more, body);
    ended_ns_ = steady_ns();
    if (response) return std::move(*response);
    static_cast<void>(connect());
    return std::nullopt;
  }
  bool connect() {
    client_.reset();
    const Seconds end = os::monotonic_now() + kReturnLimit;
    while (os::monotonic_now() < end) {
      auto made = http::HttpClient::create(options_);
      if (made && made->send("GET", "/healthz")) {
        client_ = std::make_unique<http::HttpClient>(std::move(*made));
        return true;
      }
      os::sleep_for(Seconds{0.02});
    }
    history_.error = "the controller does not serve again";
    return false;
  }
  void complain(const std::string& request, const http::Response& response) {
    history_.error = fmt::format("{}: status {}: {}", request, response.status, response.body);
  }

  void list_jobs() {
    const auto response = send("GET", "/v1/jobs?limit=40");
    if (!response) return;
    if (response->status != 200) return complain("GET /v1/jobs", *response);
    const json page = json::parse(response->body);
    RecordedList list{.called_ns = called_ns_,
                      .ended_ns = ended_ns_,
                      .revision = number_of(page.at("rev")),
                      .next = page.contains("next") ? number_of(page["next"]) : 0,
                      .items = {}};
    for (const json& job : page.at("items"))
      list.items.push_back({job_of_name(job), fields_of(job)});
    history_.lists.push_back(std::move(list));
  }

  static std::uint8_t intent_of(const json& node) {
    const std::string intent = node.at("status").at("intent");
    return static_cast<std::uint8_t>(std::find(kIntents.begin(), kIntents.end(), intent) -
                                     kIntents.begin());
  }

  void work_on_intents() {
    using Action = IntentOperation::Action;
    IntentOperation operation{.action = static_cast<Action>(random_() % 3),
                              .node = static_cast<std::uint8_t>(random_() % kIntentNodes),
                              .intents = {}};
    const std::string node = fmt::format("/v1/nodes/node-{}", operation.node);
    std::optional<http::Response> response;
    if (operation.action == Action::kSet) {
      operation.intents[0] = static_cast<std::uint8_t>(random_() % kIntents.size());
      response = send("PUT", node + "/intent", {},
                      fmt::format(R"({{"intent":"{}"}})", kIntents[operation.intents[0]]));
    } else {
      response = send("GET", operation.action == Action::kReadAll ? "/v1/nodes" : node);
    }
    if (response && response->status != 200) return complain(node, *response);
    if (response && operation.action != Action::kSet) {
      const json body = json::parse(response->body);
      if (operation.action == Action::kRead)
        operation.intents[0] = intent_of(body);
      else
        for (std::size_t i = 0; i < kIntentNodes; ++i)
          operation.intents[i] = intent_of(body.at("items").at(i));
    }
    if (response || operation.action == Action::kSet)
      history_.intents.push_back({called_ns_, ended_ns_, response.has_value(), operation});
  }

  void work_on_job() {
    const SharedJobs::Pick pick = jobs_.pick(random_());
    JobOperation operation;
    // A creation is asked for again now and then: its key gives the same job.
    const std::uint64_t kind = random_() % 100;
    operation.action = pick.id == 0 || kind < 6 ? JobAction::kCreate
                       : kind < 40              ? JobAction::kRead
                       : kind < 70              ? JobAction::kSetPriority
                       : kind < 83              ? JobAction::kHold
                       : kind < 96              ? JobAction::kRelease
                       : kind < 97              ? JobAction::kCancel
                                                : JobAction::kRead;
    const auto response = ask(pick, operation);
    if (response) {
      if (!understand(*response, operation)) return;
      if (operation.answer == JobAnswer::kDone) {
        jobs_.learn(pick.job, operation.seen.id);
        revisions_[pick.job % revisions_.size()] = operation.seen.revision;
      }
    }
    if (response || operation.action != JobAction::kRead)
      history_.jobs.push_back({pick.job, {called_ns_, ended_ns_, response.has_value(), operation}});
  }

  std::optional<http::Response> ask(const SharedJobs::Pick& pick, JobOperation& operation) {
    const std::string path = fmt::format("/v1/jobs/{}", pick.id);
    switch (operation.action) {
      case JobAction::kCreate:
        operation.priority = static_cast<std::int32_t>(pick.job % 50);
        return send("POST", "/v1/jobs", {{"Idempotency-Key", fmt::format("key-{}", pick.job)}},
                    fmt::format(R"({{"name":"j{}","hold":true,"priority":{},)"
                                R"("roles":[{{"devices":16}}],"command":["true"]}})",
                                pick.job, operation.priority));
      case JobAction::kRead:
        return send("GET", path);
      case JobAction::kSetPriority:
        operation.priority = static_cast<std::int32_t>(random_() % 1000);
        // The revision that this client saw last of the job, so that many are stale.
        operation.expected = revisions_[pick.job % revisions_.size()];
        return send("PATCH", path, {{"If-Match", std::to_string(operation.expected)}},
                    fmt::format(R"({{"priority":{}}})", operation.priority));
      case JobAction::kHold:
        return send("POST", path + "/hold");
      case JobAction::kRelease:
        return send("POST", path + "/release");
      case JobAction::kCancel:
        return send("POST", path + "/cancel");
    }
    return std::nullopt;
  }

  bool understand(const http::Response& response, JobOperation& operation) {
    if (response.status == 200 || response.status == 201) {
      operation.seen = fields_of(json::parse(response.body));
    } else if (response.status == 412) {
      operation.answer = JobAnswer::kStale;
    } else if (response.status == 409) {
      operation.answer = JobAnswer::kConflict;
    } else {
      complain(fmt::format("operation {} of a job", static_cast<int>(operation.action)), response);
      return false;
    }
    return true;
  }

  http::ClientOptions options_;
  http::Headers headers_;
  SharedJobs& jobs_;
  std::mt19937_64 random_;
  std::unique_ptr<http::HttpClient> client_;
  std::int64_t called_ns_ = 0;
  std::int64_t ended_ns_ = 0;
  std::array<std::int64_t, 64> revisions_{};
  RecordedHistory history_;
};

// Kills and starts the controller until nothing is left to do.
Status kill_repeatedly(PlatformPrograms& programs, const RecordingOptions& options,
                       const std::atomic<std::int64_t>& left, Recording& recording) {
  std::mt19937_64 random(options.seed ^ 0x9e3779b97f4a7c15);
  while (left.load() > 0) {
    const double share = static_cast<double>(random() % 1000) / 500;  // 0 to 2: the mean is 1
    const Seconds end = os::monotonic_now() + options.kill_every * share;
    while (left.load() > 0 && (options.kill_every.value <= 0 || os::monotonic_now() < end))
      os::sleep_for(Seconds{0.002});
    if (left.load() <= 0) break;
    const Seconds before = os::monotonic_now();
    REGATTA_TRY(gone_ns, programs.kill_controller());
    recording.kills_ns.push_back(gone_ns);
    REGATTA_TRY_DO(programs.start_controller());
    recording.recoveries.push_back(os::monotonic_now() - before);
  }
  return {};
}

// A request without an answer ends with the next kill after its failure was seen: later it cannot
// take effect, for the process that has its connection is gone.
template <typename Timed>
void bound_by_kills(Timed& timed, const std::vector<std::int64_t>& kills_ns) {
  if (timed.is_answered) return;
  const auto kill = std::lower_bound(kills_ns.begin(), kills_ns.end(), timed.ended_ns);
  timed.ended_ns = kill == kills_ns.end() ? kNeverNs : *kill;
}

}  // namespace

void RecordedHistory::append(RecordedHistory&& other) {
  std::move(other.jobs.begin(), other.jobs.end(), std::back_inserter(jobs));
  std::move(other.intents.begin(), other.intents.end(), std::back_inserter(intents));
  std::move(other.lists.begin(), other.lists.end(), std::back_inserter(lists));
  if (error.empty()) error = std::move(other.error);
}

Result<Recording> record_history(PlatformPrograms& programs, const RecordingOptions& options) {
  Recording recording;
  SharedJobs jobs;
  std::atomic<std::int64_t> left = static_cast<std::int64_t>(options.operations);
  std::vector<std::unique_ptr<RecordingClient>> clients;
  std::vector<std::thread> threads;
  const Seconds before = os::monotonic_now();
  for (int i = 0; i < options.clients; ++i) {
    clients.push_back(std::make_unique<RecordingClient>(
        programs, jobs, options.seed * 1000 + static_cast<std::uint64_t>(i)));
    threads.emplace_back([&left, client = clients.back().get()] { client->run(left); });
  }
  const Status killed = kill_repeatedly(programs, options, left, recording);
  if (!killed) left = 0;
  for (std::thread& thread : threads)
    thread.join();
  recording.time = os::monotonic_now() - before;
  REGATTA_TRY_DO(killed);
  REGATTA_TRY(gone_ns, programs.kill_controller());
  recording.kills_ns.push_back(gone_ns);
  for (const auto& client : clients)
    recording.history.append(client->take());
  for (RecordedJobOperation& each : recording.history.jobs)
    bound_by_kills(each.timed, recording.kills_ns);
  for (auto& each : recording.history.intents)
    bound_by_kills(each, recording.kills_ns);
  return recording;
}

}  // namespace regatta::platform_proofs
