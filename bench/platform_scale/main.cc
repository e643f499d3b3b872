// bench/platform_scale/main.cc: the real controller with the agents of thousands of servers over
// real connections: its memory and processor time, and what follows when servers die.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "bench/platform_scale/agent_fleet.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::bench {
namespace {

constexpr const char* kUsage =
    "usage: regatta-platform-scale [--nodes N] [--jobs N] [--seconds S] [--deaths N] [--busy N]\n"
    "  [--job-time S] [--check]\n"
    "Starts regatta-controller, connects N agents (100) of 8 devices each, submits N jobs (1000),\n"
    "and watches for S seconds (10) with N busy threads (2) beside it; then N servers (3) die, "
    "one\n"
    "after the other. Prints a JSON line. --check: exit status 1 where a server is known late, "
    "its\n"
    "jobs are placed late, or another one counts as silent.\n"
    "Example: regatta-platform-scale --nodes 10000 --jobs 100000 --seconds 600 --job-time 300\n";
constexpr const char* kQueues = R"({"queues":[{"name":"quick","lease":"3s"},{"name":"usual"}]})";
constexpr int kBatch = 1000;
constexpr Seconds kKnownMost{4};
constexpr Seconds kPlacedMost{2};  // after that
constexpr Seconds kStartMost{600};

struct ScaleOptions {
  int nodes = 100;
  int jobs = 1000;
  int seconds = 10;
  int deaths = 3;
  int busy = 2;
  int job_time_s = 60;
  bool is_checked = false;
};

struct ScaleResult {
  Seconds connect_time;
  Seconds submit_time;
  double core_percent = 0;  // of one core, in the calm
  long resident_kib = 0;
  long most_kib = 0;  // of all time
  long long silences = 0;
  FleetCounts counts;
  Seconds known;  // the latest
  DeathReport deaths;
};

// The controller's process, which ends with this object.
class ControllerProcess {
 public:
  static Result<ControllerProcess> start(const std::string& folder) {
    REGATTA_TRY(programs, os::executable_folder());
    const std::string ready = folder + "/url";
    ControllerProcess process;
    REGATTA_TRY(pid, os::spawn({programs + "/regatta-controller", "--state", folder + "/state",
                                "--port", "0", "--ready-file", ready},
                               {}));
    process.pid_ = pid;
    const Seconds end = os::monotonic_now() + kStartMost;
    for (;;) {
      const auto url = os::read_file(ready);
      if (url && url->ends_with('\n')) {
        process.url_ = url->substr(0, url->size() - 1);
        return process;
      }
      if (os::monotonic_now() > end)
        return Error{Code::kTimeout, "regatta-controller does not start"};
      os::sleep_for(Seconds{0.01});
    }
  }
  ControllerProcess(ControllerProcess&& other) noexcept
      : pid_(std::exchange(other.pid_, -1)), url_(std::move(other.url_)) {}
  ControllerProcess& operator=(ControllerProcess&&) = delete;
  ~ControllerProcess() {
    if (pid_ > 0) static_cast<void>(os::terminate(pid_, Seconds{10}).has_value());
  }

  const std::string& url() const { return url_; }

  // KiB of a line such as "VmRSS:  1234 kB" of /proc/PID/status; 0: there is none.
  long memory_kib(const std::string& name) const {
    const auto text = os::read_file(fmt::format("/proc/{}/status", pid_));
    const std::size_t at = text ? text->find(name + ":") : std::string::npos;
    return at == std::string::npos ? 0
                                   : std::strtol(text->c_str() + at + name.size() + 1, nullptr, 10);
  }

  // The time on a core of all threads. Source: Linux, scheduler/sched-stats.rst.
  Seconds processor_time() const {
    double sum_ns = 0;
    std::error_code error;
    for (const auto& task :
         std::filesystem::directory_iterator(fmt::format("/proc/{}/task", pid_), error)) {
      const auto text = os::read_file(task.path().string() + "/schedstat");
      if (text) sum_ns += std::strtod(text->c_str(), nullptr);
    }
    return Seconds{sum_ns / 1e9};
  }

 private:
  ControllerProcess() = default;
  pid_t pid_ = -1;
  std::string url_;
};

class Client {
 public:
  static Result<Client> create(const std::string& url, const std::string& state) {
    http::ClientOptions options;
    options.url = url;
    REGATTA_TRY(ca, os::read_file(state + "/ca.pem"));
    options.ca = ca;
    REGATTA_TRY(token, os::read_file(state + "/admin.token"));
    REGATTA_TRY(client, http::HttpClient::create(options));
    return Client(std::move(client), "Bearer " + token.substr(0, token.find('\n')));
  }

  Result<std::string> ask(const std::string& method, const std::string& path,
                          const std::string& body = {}) {
    REGATTA_TRY(response,
                client_.send(method, path, {{"Authorization", token_}, {"If-Match", "0"}}, body));
    if (response.status >= 300) return Error{Code::kUnavailable, path + ": " + response.body};
    return response.body;
  }

 private:
  Client(http::HttpClient client, std::string token)
      : client_(std::move(client)), token_(std::move(token)) {}
  http::HttpClient client_;
  std::string token_;
};

// The value of a line of Prometheus text; -1: there is none.
double metric(const std::string& text, const std::string& name) {
  const std::size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + name.size() + 2, nullptr);
}

Result<long long> silences(Client& client) {
  REGATTA_TRY(metrics, client.ask("GET", "/metrics"));
  return static_cast<long long>(metric(metrics, "regatta_node_silences_total"));
}

Status submit(Client& client, const ScaleOptions& options) {
  for (int first = 0; first < options.jobs; first += kBatch) {
    std::string jobs;
    for (int i = first; i < std::min(first + kBatch, options.jobs); ++i)
      jobs += fmt::format(
          R"({}{{"name":"j{}","queue":"{}","command":["work"],"roles":[{{"devices":{}}}],)"
          R"("run_time":{{"median":"{}s","log_spread":1}}}})",
          i == first ? "" : ",", i, i % 2 == 0 ? "quick" : "usual", 1 + i % 8, options.job_time_s);
    REGATTA_TRY_DO(client.ask("POST", "/v1/jobs", fmt::format(R"({{"jobs":[{}]}})", jobs)));
  }
  return {};
}

Status wait_for_agents(const AgentFleet& fleet, int nodes) {
  const Seconds end = os::monotonic_now() + kStartMost;
  while (fleet.counts().connected < nodes) {
    if (os::monotonic_now() > end)
      return Error{Code::kTimeout,
                   fmt::format("{} of {} agents connect", fleet.counts().connected, nodes)};
    os::sleep_for(Seconds{0.02});
  }
  return {};
}

// Threads that keep cores busy.
class BusyThreads {
 public:
  explicit BusyThreads(int count) {
    for (int i = 0; i < count; ++i)
      threads_.emplace_back([this] {
        while (!is_over_.load(std::memory_order_relaxed)) {
        }
      });
  }
  BusyThreads(const BusyThreads&) = delete;
  BusyThreads& operator=(const BusyThreads&) = delete;
  ~BusyThreads() {
    is_over_ = true;
    for (std::thread& thread : threads_)
      thread.join();
  }

 private:
  std::atomic<bool> is_over_ = false;
  std::vector<std::thread> threads_;
};

void watch_calm(const ControllerProcess& controller, int seconds, ScaleResult& result) {
  const Seconds before = controller.processor_time();
  const Seconds begin = os::monotonic_now();
  os::sleep_for(Seconds{static_cast<double>(seconds)});
  const Seconds length = os::monotonic_now() - begin;
  result.core_percent = 100 * (controller.processor_time() - before).value / length.value;
  result.resident_kib = controller.memory_kib("VmRSS");
}

// Until the API says that the server is silent.
Result<Seconds> time_until_known(Client& client, const std::string& node) {
  const Seconds begin = os::monotonic_now();
  for (;;) {
    REGATTA_TRY(text, client.ask("GET", "/v1/nodes/" + node));
    const Seconds time = os::monotonic_now() - begin;
    if (text.find(R"("silent":true)") != std::string::npos) return time;
    if (time > kStartMost) return Error{Code::kTimeout, node + ": its death is not seen"};
    os::sleep_for(Seconds{0.02});
  }
}

Status watch_deaths(Client& client, AgentFleet& fleet, const ScaleOptions& options,
                    ScaleResult& result) {
  for (int i = 0; i < options.deaths; ++i) {
    const int node = static_cast<int>((2LL * i + 1) * options.nodes / (2LL * options.deaths));
    fleet.kill(node);
    REGATTA_TRY(known, time_until_known(client, AgentFleet::name_of(node)));
    result.known = std::max(result.known, known);
    // Jobs of the queue with the usual lease take a quarter more than 30 s.
    os::sleep_for(Seconds{5});
  }
  return {};
}

void print(const ScaleOptions& options, const ScaleResult& result) {
  constexpr const char* kLine =
      "{{\"nodes\":{},\"jobs\":{},\"connect_s\":{:.2f},\"submit_s\":{:.2f},\"calm_s\":{},"
      "\"core_percent\":{:.1f},\"resident_mib\":{:.1f},\"most_mib\":{:.1f},\"started\":{},"
      "\"ended\":{},\"connections\":{},\"lease_ends\":{},\"silences\":{},\"deaths\":{},"
      "\"known_s\":{:.2f},\"jobs_on_dead\":{},\"placed_again\":{},\"last_placed_s\":{:.2f}}}\n";
  fmt::print(kLine, options.nodes, options.jobs, result.connect_time.value,
             result.submit_time.value, options.seconds, result.core_percent,
             static_cast<double>(result.resident_kib) / 1024,
             static_cast<double>(result.most_kib) / 1024, result.counts.started,
             result.counts.ended, result.counts.connections, result.counts.lease_ends,
             result.silences, options.deaths, result.known.value, result.deaths.jobs,
             result.deaths.placed_again, result.deaths.last_placed.value);
}

Status check(const ScaleOptions& options, const ScaleResult& result) {
  const auto missed = [](const std::string& what) { return Error{Code::kConflict, what}; };
  if (result.known > kKnownMost) return missed("a death is known late");
  if (result.deaths.placed_again == 0) return missed("no job of a dead server is placed again");
  if (result.deaths.last_placed > kKnownMost + kPlacedMost) return missed("jobs are placed late");
  if (result.silences != options.deaths || result.counts.lease_ends != 0)
    return missed("a server that lives counts as dead");
  return {};
}

Result<ScaleOptions> read_options(bench_program::Arguments arguments) {
  ScaleOptions options;
  const auto take = [&](const char* name, int& value, IntRange range) -> Status {
    REGATTA_TRY(taken, bench_program::take_number(arguments, name, value, range));
    value = taken;
    return {};
  };
  REGATTA_TRY_DO(take("--nodes", options.nodes, {1, 19'000}));
  REGATTA_TRY_DO(take("--jobs", options.jobs, {1, 1'000'000}));
  REGATTA_TRY_DO(take("--seconds", options.seconds, {1, 86'400}));
  REGATTA_TRY_DO(take("--deaths", options.deaths, {1, 100}));
  REGATTA_TRY_DO(take("--busy", options.busy, {0, 64}));
  REGATTA_TRY_DO(take("--job-time", options.job_time_s, {1, 86'400}));
  options.is_checked = bench_program::take_flag(arguments, "--check");
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 0));
  return options;
}

Status run(bench_program::Arguments arguments) {
  REGATTA_TRY(options, read_options(std::move(arguments)));
  REGATTA_TRY_DO(os::raise_descriptor_limit(static_cast<std::size_t>(options.nodes) + 200));
  REGATTA_TRY(folder, os::TempFolder::create("regatta-scale"));
  REGATTA_TRY(controller, ControllerProcess::start(folder.path()));
  const std::string state = folder.path() + "/state";
  REGATTA_TRY(client, Client::create(controller.url(), state));
  REGATTA_TRY_DO(client.ask("PUT", "/v1/queues", kQueues));
  FleetOptions fleet_options;
  fleet_options.nodes = options.nodes;
  fleet_options.url = controller.url();
  fleet_options.job_time = Seconds{static_cast<double>(options.job_time_s)};
  REGATTA_TRY(ca, os::read_file(state + "/ca.pem"));
  REGATTA_TRY(key, os::read_file(state + "/ca.key"));
  fleet_options.authority = {ca, key};
  ScaleResult result;
  Seconds begin = os::monotonic_now();
  AgentFleet fleet(std::move(fleet_options));
  REGATTA_TRY_DO(wait_for_agents(fleet, options.nodes));
  result.connect_time = os::monotonic_now() - begin;
  fleet.run_before_others();
  begin = os::monotonic_now();
  REGATTA_TRY_DO(submit(client, options));
  result.submit_time = os::monotonic_now() - begin;
  REGATTA_TRY(before, silences(client));
  {
    const BusyThreads busy(options.busy);
    watch_calm(controller, options.seconds, result);
    REGATTA_TRY_DO(watch_deaths(client, fleet, options, result));
  }
  REGATTA_TRY(after, silences(client));
  result.silences = after - before;
  result.most_kib = controller.memory_kib("VmHWM");
  result.counts = fleet.counts();
  result.deaths = fleet.death_report();
  print(options, result);
  return options.is_checked ? check(options, result) : Status();
}

}  // namespace
}  // namespace regatta::bench

int main(int count, char** values) {
  return regatta::bench_program::run_program(count, values, regatta::bench::kUsage, 0,
                                             regatta::bench::run);
}
