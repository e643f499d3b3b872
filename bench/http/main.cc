// bench/http/main.cc: requests a second of the HTTP server over kept TLS connections, and the
// memory that idle connections take.

#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <malloc.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench/bench_program.h"
#include "bench/http/http_load.h"
#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_server.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::http_bench {
namespace {

constexpr const char* kUsage =
    "usage: regatta-http-bench [--connections N] [--seconds S] [--idle M]\n"
    "N connections (100) send requests for S seconds (5); then M connections (2000) are idle,\n"
    "and M WebSockets with client certificates. Prints a JSON line for each.\n";
constexpr Seconds kDay{86400};
const std::string kRequest =
    "GET /v1/jobs?limit=5 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    "Accept: application/json\r\nUser-Agent: regatta-http-bench\r\n\r\n";
const std::string kUpgrade =
    "GET /v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: Upgrade\r\n"
    "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
const std::string kBody = R"({"items":[],"rev":"1"})";

struct Options {
  int connections = 100;
  int seconds = 5;
  int idle = 2000;
};

struct Identities {
  tls::Identity authority;
  tls::Identity server;
  tls::Identity agent;
};

Result<Identities> make_identities() {
  const auto now = static_cast<std::int64_t>(os::system_now().value);
  Identities made;
  REGATTA_TRY(authority, tls::create_authority("bench", now, kDay));
  made.authority = std::move(authority);
  REGATTA_TRY(server, tls::issue(made.authority, {.common_name = "server", .hosts = {"127.0.0.1"}},
                                 now, kDay));
  made.server = std::move(server);
  REGATTA_TRY(agent,
              tls::issue(made.authority,
                         {.common_name = "n1", .uris = {"regatta://cluster/node/n1"}}, now, kDay));
  made.agent = std::move(agent);
  return made;
}

// A process of clients. It gets the port, does its work, tells by one line that it is done, and
// waits.
class ClientProcess {
 public:
  using Work = std::function<Result<std::string>(std::uint16_t port)>;

  static Result<ClientProcess> begin(const Work& work) {
    std::fflush(stdout);
    REGATTA_TRY(to, os::make_pipe());
    REGATTA_TRY(from, os::make_pipe());
    ClientProcess process;
    process.id_ = ::fork();
    if (process.id_ < 0) return os::errno_error("fork");
    if (process.id_ == 0) {
      to.write_end.reset();
      run(work, to.read_end.get(), from.write_end.get());
    }
    process.to_ = std::move(to.write_end);
    process.from_ = std::move(from.read_end);
    return process;
  }
  // Waits for the line.
  Result<std::string> start(std::uint16_t port) const {
    if (::write(to_.get(), &port, sizeof port) != sizeof port) return os::errno_error("pipe");
    std::string line;
    char letter = 0;
    while (::read(from_.get(), &letter, 1) == 1 && letter != '\n')
      line += letter;
    if (line.starts_with("error: ")) return Error{Code::kUnavailable, line.substr(7)};
    return line;
  }
  void end() const {
    ::kill(id_, SIGKILL);
    ::waitpid(id_, nullptr, 0);
  }

 private:
  [[noreturn]] static void run(const Work& work, int from, int to) {
    std::uint16_t port = 0;
    std::string line = "error: no port";
    if (::read(from, &port, sizeof port) == sizeof port) {
      const auto result = work(port);
      line = result ? *result : "error: " + result.error().message;
      line += '\n';
      if (::write(to, line.data(), line.size()) > 0) ::pause();
    }
    ::_exit(0);
  }

  pid_t id_ = -1;
  os::UniqueFd to_;
  os::UniqueFd from_;
};

Result<std::string> load(const Options& options, const tls::TlsContext& context,
                         std::uint16_t port) {
  std::vector<LoadConnection> connections;
  std::size_t response_bytes = 0;
  for (int i = 0; i < options.connections; ++i) {
    REGATTA_TRY(one, open_connection(context, port));
    connections.push_back(std::move(one));
    REGATTA_TRY(bytes, ask(connections.back(), kRequest, kBody));
    response_bytes = bytes;
  }
  REGATTA_TRY(result, run_load(connections, kRequest, response_bytes,
                               Seconds{static_cast<double>(options.seconds)}));
  return fmt::format(R"("requests_per_s":{:.0f},"latency_p50_us":{:.0f},"latency_p99_us":{:.0f})",
                     static_cast<double>(result.requests) / result.time.value,
                     result.latency_p50.value * 1e6, result.latency_p99.value * 1e6);
}

// Opens connections that each make one request, or become WebSockets.
Result<std::string> stay_idle(const Options& options, const tls::TlsContext& context,
                              std::uint16_t port, bool is_web_socket) {
  REGATTA_TRY_DO(os::raise_descriptor_limit(static_cast<std::size_t>(options.idle)));
  // Until the process ends.
  static std::vector<LoadConnection> connections;
  for (int i = 0; i < options.idle; ++i) {
    REGATTA_TRY(one, open_connection(context, port));
    connections.push_back(std::move(one));
    REGATTA_TRY_DO(ask(connections.back(), is_web_socket ? kUpgrade : kRequest,
                       is_web_socket ? "\r\n\r\n" : kBody));
  }
  return std::string("ready");
}

double resident_bytes() {
  long pages = 0;
  if (std::FILE* const file = std::fopen("/proc/self/statm", "r")) {
    if (std::fscanf(file, "%*d %ld", &pages) != 1) pages = 0;
    std::fclose(file);
  }
  return static_cast<double>(pages) * static_cast<double>(::sysconf(_SC_PAGESIZE));
}

// The server in a thread of this process.
class BenchServer {
 public:
  static Result<std::unique_ptr<BenchServer>> listen(const Identities& identities) {
    auto made = std::make_unique<BenchServer>();
    BenchServer& self = *made;
    REGATTA_TRY(server, http::HttpServer::listen(
                            self.loop_, {.idle_limit{600}},
                            {identities.server.certificate, identities.server.private_key,
                             identities.authority.certificate},
                            [&self](std::unique_ptr<http::Exchange> e) { self.answer(*e); }));
    self.server_ = std::move(server);
    self.thread_ = std::thread([&self] { self.loop_.run(); });
    return made;
  }
  ~BenchServer() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
    sockets_.clear();
    server_.reset();
  }

  std::uint16_t port() const { return server_->port(); }
  Seconds cpu_time() {
    Seconds time;
    run([&time] { time = os::thread_cpu_time(); });
    return time;
  }
  std::size_t connection_count() {
    std::size_t count = 0;
    run([this, &count] { count = server_->connection_count(); });
    return count;
  }

 private:
  void answer(http::Exchange& exchange) {
    if (exchange.request().path != "/v1/agents") return exchange.respond({.body = kBody});
    if (auto accepted = exchange.accept_web_socket()) {
      (*accepted)->on_message([](std::string_view) {});
      sockets_.push_back(std::move(*accepted));
    }
  }
  void run(const std::function<void()>& work) {
    std::atomic<bool> is_done = false;
    loop_.post([&] {
      work();
      is_done = true;
      is_done.notify_one();
    });
    is_done.wait(false);
  }

  http::EventLoop loop_;
  std::unique_ptr<http::HttpServer> server_;
  std::vector<std::unique_ptr<http::WebSocket>> sockets_;
  std::thread thread_;
};

Status measure_idle(BenchServer& server, const ClientProcess& clients, const Options& options,
                    const char* what) {
  const std::size_t before = server.connection_count();
  const double resident = resident_bytes();
  const auto heap = static_cast<double>(::mallinfo2().uordblks);
  REGATTA_TRY_DO(clients.start(server.port()));
  os::sleep_for(Seconds{1});
  const auto count = static_cast<double>(server.connection_count() - before);
  fmt::print(
      "{{\"what\":\"{}\",\"connections\":{},\"open\":{:.0f},\"heap_bytes_each\":{:.0f},"
      "\"resident_bytes_each\":{:.0f}}}\n",
      what, options.idle, count, (static_cast<double>(::mallinfo2().uordblks) - heap) / count,
      (resident_bytes() - resident) / count);
  clients.end();
  // The server sees the end of each.
  for (int i = 0; i < 1000 && server.connection_count() > before; ++i)
    os::sleep_for(Seconds{0.01});
  return {};
}

Status run(bench_program::Arguments arguments) {
  Options options;
  REGATTA_TRY(connections, bench_program::take_number(arguments, "--connections",
                                                      options.connections, {1, 10'000}));
  REGATTA_TRY(seconds,
              bench_program::take_number(arguments, "--seconds", options.seconds, {1, 600}));
  REGATTA_TRY(idle, bench_program::take_number(arguments, "--idle", options.idle, {1, 20'000}));
  REGATTA_TRY_DO(bench_program::check_rest(arguments, 0));
  options = {connections, seconds, idle};
  REGATTA_TRY(identities, make_identities());
  REGATTA_TRY(context, tls::TlsContext::client(identities.authority.certificate, {}));
  REGATTA_TRY(agent_context,
              tls::TlsContext::client(identities.authority.certificate, identities.agent));
  // Before this process has threads.
  REGATTA_TRY(loaders, ClientProcess::begin(
                           [&](std::uint16_t port) { return load(options, context, port); }));
  REGATTA_TRY(idlers, ClientProcess::begin([&](std::uint16_t port) {
                return stay_idle(options, context, port, false);
              }));
  REGATTA_TRY(agents, ClientProcess::begin([&](std::uint16_t port) {
                return stay_idle(options, agent_context, port, true);
              }));
  REGATTA_TRY_DO(os::raise_descriptor_limit(static_cast<std::size_t>(2 * options.idle + 100)));
  REGATTA_TRY(server, BenchServer::listen(identities));
  const Seconds begin = server->cpu_time();
  REGATTA_TRY(line, loaders.start(server->port()));
  fmt::print("{{\"what\":\"requests\",\"connections\":{},{},\"loop_cpu_share\":{:.2f}}}\n",
             options.connections, line,
             (server->cpu_time() - begin).value / static_cast<double>(options.seconds));
  loaders.end();
  REGATTA_TRY_DO(measure_idle(*server, idlers, options, "idle TLS connections"));
  return measure_idle(*server, agents, options, "idle WebSockets with client certificates");
}

}  // namespace
}  // namespace regatta::http_bench

int main(int count, char** values) {
  return regatta::bench_program::run_program(count, values, regatta::http_bench::kUsage, 0,
                                             regatta::http_bench::run);
}
