// bench/submissions/main.cc: submissions to a running controller over HTTPS.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "bench/bench_program.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/stats.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"

namespace regatta {
namespace {

constexpr const char* kUsage =
    "usage: regatta-submissions STATE URL [--clients N] [--seconds S] [--batch N]\n"
    "Example: regatta-submissions /tmp/regatta https://127.0.0.1:7780 --clients 64 --batch 100\n";
constexpr const char* kJob =
    R"({"name":"bench","hold":true,"roles":[{"devices":8}],"command":["true"]})";

struct Load {
  http::ClientOptions options;
  http::Headers headers;
  std::string body;
  Seconds length;
};

struct Times {
  Mutex mutex;
  std::vector<double> seconds REGATTA_GUARDED_BY(mutex);
  std::string error REGATTA_GUARDED_BY(mutex);
};

void submit_for(const Load& load, Times& times) {
  std::vector<double> own;
  std::string error;
  auto client = http::HttpClient::create(load.options);
  const Seconds end = os::monotonic_now() + load.length;
  while (client && error.empty() && os::monotonic_now() < end) {
    const Seconds before = os::monotonic_now();
    const auto response = client->send("POST", "/v1/jobs", load.headers, load.body);
    own.push_back((os::monotonic_now() - before).value);
    if (!response)
      error = response.error().message;
    else if (response->status != 201)
      error = response->body;
  }
  MutexLock lock(times.mutex);
  times.seconds.insert(times.seconds.end(), own.begin(), own.end());
  if (!client) error = client.error().message;
  if (!error.empty()) times.error = error;
}

Status run(bench_program::Arguments arguments) {
  REGATTA_TRY(clients, bench_program::take_number(arguments, "--clients", 32, {1, 1000}));
  REGATTA_TRY(seconds, bench_program::take_number(arguments, "--seconds", 5, {1, 3600}));
  REGATTA_TRY(batch, bench_program::take_number(arguments, "--batch", 1, {1, 10'000}));
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 2));
  Load load;
  load.options.url = arguments.at(1);
  REGATTA_TRY(ca, os::read_file(arguments.at(0) + "/ca.pem"));
  load.options.ca = ca;
  REGATTA_TRY(token, os::read_file(arguments.at(0) + "/admin.token"));
  load.headers = {{"Authorization", "Bearer " + token.substr(0, token.find('\n'))}};
  load.length = Seconds{static_cast<double>(seconds)};
  load.body = kJob;
  if (batch > 1) {
    std::string jobs = kJob;
    for (int i = 1; i < batch; ++i)
      jobs += std::string(",") + kJob;
    load.body = fmt::format(R"({{"jobs":[{}]}})", jobs);
  }
  Times times;
  const Seconds before = os::monotonic_now();
  std::vector<std::thread> threads;
  for (int i = 0; i < clients; ++i)
    threads.emplace_back([&] { submit_for(load, times); });
  for (std::thread& thread : threads)
    thread.join();
  const double length = (os::monotonic_now() - before).value;
  MutexLock lock(times.mutex);
  if (!times.error.empty()) return Error{Code::kUnavailable, times.error};
  std::sort(times.seconds.begin(), times.seconds.end());
  const auto at_share = [&](double share) REGATTA_REQUIRES(times.mutex) {
    return 1000 * times.seconds[static_cast<std::size_t>(
                      share * static_cast<double>(times.seconds.size() - 1))];
  };
  const double rate = static_cast<double>(times.seconds.size()) / length;
  fmt::print(
      "{} clients, batches of {}: {:.0f} requests/s, {:.0f} jobs/s, p50 {:.1f} ms, p99 {:.1f} ms\n",
      clients, batch, rate, rate * batch, at_share(0.5), at_share(0.99));
  return {};
}

}  // namespace
}  // namespace regatta

int main(int count, char** values) {
  return regatta::bench_program::run_program(count, values, regatta::kUsage, 2, regatta::run);
}
