#include "regatta/platform/trainer/internal/gang_rank.h"

#include <array>
#include <csignal>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"

namespace regatta::trainer {
namespace {

constexpr Seconds kConnectLimit{120};
constexpr Seconds kConnectAgain{0.1};
constexpr Seconds kMemoryEvery{1};
constexpr int kWaitMs = 500;
constexpr std::size_t kRelayedLineMost = std::size_t{4} << 20;

Status write_line(int fd, const std::string& line, const char* to) {
  const std::string text = line + '\n';
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = ::write(fd, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os::errno_error(to);
    written += static_cast<std::size_t>(count);
  }
  return {};
}

// Rank 0 may start later than the others.
Result<os::UniqueFd> connect_when_there(const os::HostPort& to) {
  const Seconds give_up = os::monotonic_now() + kConnectLimit;
  for (;;) {
    auto connected = os::connect_tcp(to, Seconds{5});
    if (connected || os::monotonic_now() > give_up) return connected;
    os::sleep_for(kConnectAgain);
  }
}

// VmHWM of proc(5), in bytes; 0: not known.
double peak_memory(pid_t pid) {
  const auto text = os::read_file(fmt::format("/proc/{}/status", pid));
  if (!text) return 0;
  const std::size_t found = text->find("VmHWM:");
  if (found == std::string::npos) return 0;
  const std::string line = text->substr(found + 6, text->find('\n', found) - found - 6);
  const auto kib = parse_number<long long>(trim(std::string_view(line).substr(0, line.find("kB"))));
  return kib ? 1024.0 * static_cast<double>(*kib) : 0;
}

class RankRelay {
 public:
  RankRelay(const RankOptions& options, os::UniqueFd socket)
      : options_(options), socket_(std::move(socket)), from_gang_(kRelayedLineMost) {}

  Status run() {
    nlohmann::json hello = to_json(options_.member);
    hello["gang"] = options_.gang;
    REGATTA_TRY_DO(write_line(socket_.get(), hello.dump(), "rank 0"));
    while (!is_over_)
      REGATTA_TRY_DO(turn());
    return {};
  }

  ~RankRelay() {
    if (worker_ < 0) return;
    static_cast<void>(os::send_signal(worker_, SIGKILL));
    static_cast<void>(os::wait_for(worker_, Seconds{5}));
  }
  RankRelay(const RankRelay&) = delete;
  RankRelay& operator=(const RankRelay&) = delete;

 private:
  Status turn() {
    std::array<pollfd, 2> events{{{socket_.get(), POLLIN, 0}, {output_.get(), POLLIN, 0}}};
    if (::poll(events.data(), events.size(), kWaitMs) < 0 && errno != EINTR)
      return os::errno_error("poll");
    if (events[1].revents != 0) REGATTA_TRY_DO(read_worker());
    if (!is_over_ && events[0].revents != 0) REGATTA_TRY_DO(read_gang());
    return {};
  }

  Status read_gang() {
    std::array<char, 65536> block{};
    const ssize_t count = ::read(socket_.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) return {};
    if (count <= 0) return Error{Code::kUnavailable, "the connection to rank 0 ended"};
    from_gang_.append({block.data(), static_cast<std::size_t>(count)});
    while (const auto line = from_gang_.next()) {
      if (line->starts_with("{\"gang_error\"")) {
        const auto error = nlohmann::json::parse(*line, nullptr, false);
        return Error{Code::kUnavailable, error.is_object() ? error.value("gang_error", "") : ""};
      }
      if (worker_ < 0) REGATTA_TRY_DO(start_worker());
      REGATTA_TRY_DO(write_line(input_.get(), *line, "worker"));
    }
    return {};
  }

  Status start_worker() {
    REGATTA_TRY(input, os::make_pipe());
    REGATTA_TRY(output, os::make_pipe());
    os::SpawnOptions spawning;
    // A device is one thread.
    spawning.environment = {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1"};
    spawning.stdin_fd = input.read_end.get();
    spawning.stdout_fd = output.write_end.get();
    REGATTA_TRY(pid, os::spawn({options_.worker, "train"}, spawning));
    worker_ = pid;
    input_ = std::move(input.write_end);
    output_ = std::move(output.read_end);
    return {};
  }

  Status read_worker() {
    std::array<char, 65536> block{};
    const ssize_t count = ::read(output_.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) return {};
    if (count > 0) {
      from_worker_.append({block.data(), static_cast<std::size_t>(count)});
      send_memory();
      while (const auto line = from_worker_.next())
        REGATTA_TRY_DO(pass(*line));
      return {};
    }
    const auto ended = os::wait_for(std::exchange(worker_, -1));
    is_over_ = true;
    const int status = ended ? ended->shell_status() : 1;
    // Rank 0 may be gone: then its own end says why.
    static_cast<void>(write_line(
        socket_.get(), nlohmann::json{{"event", "exit"}, {"status", status}}.dump(), "rank 0"));
    if (status == 0) return {};
    return error_.value_or(
        Error{Code::kUnavailable, fmt::format("the worker ended with status {}", status)});
  }

  Status pass(const std::string& line) {
    if (line.find("\"error\"") != std::string::npos) {
      const auto event = nlohmann::json::parse(line, nullptr, false);
      if (event.is_object() && event.value("event", "") == "error")
        error_ = Error{Code::kUnavailable, event.value("message", "the worker failed")};
    }
    return write_line(socket_.get(), line, "rank 0");
  }

  void send_memory() {
    const Seconds now = os::monotonic_now();
    if (now < next_memory_) return;
    next_memory_ = now + kMemoryEvery;
    const double bytes = peak_memory(worker_);
    if (bytes > 0)
      static_cast<void>(write_line(
          socket_.get(), nlohmann::json{{"event", "memory"}, {"bytes", bytes}}.dump(), "rank 0"));
  }

  const RankOptions& options_;
  os::UniqueFd socket_;
  LineSplitter from_gang_;
  LineSplitter from_worker_;
  pid_t worker_ = -1;
  os::UniqueFd input_;
  os::UniqueFd output_;
  std::optional<Error> error_;  // that the worker named
  Seconds next_memory_;
  bool is_over_ = false;
};

}  // namespace

Status run_rank(const RankOptions& options) {
  REGATTA_TRY(socket, connect_when_there(options.coordinator));
  os::enable_keepalive(socket.get());
  RankRelay relay(options, std::move(socket));
  return relay.run();
}

}  // namespace regatta::trainer
