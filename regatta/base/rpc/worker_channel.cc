#include "regatta/base/rpc/worker_channel.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::rpc {
namespace {

constexpr EnumNames<7> kCodeNames{"invalid_input", "not_found", "conflict",   "exhausted",
                                  "unavailable",   "timeout",   "unsupported"};

// kUnavailable whatever the errno: the connection to the agent is gone.
Error system_error(std::string_view what) {
  return Error{Code::kUnavailable, fmt::format("{}: {}", what, os::errno_text())};
}

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return system_error("cannot write to the agent, is it gone");
    }
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

struct WorkerChannel::Impl {
  PlannedPorts planned;
  os::UniqueFd input_fd;
  os::UniqueFd output_fd;
  LineSplitter input;
  Mutex output_mutex;  // keeps the lines of two threads apart

  Result<std::string> next_line() {
    for (;;) {
      if (auto line = input.next()) return *std::move(line);
      std::array<char, 65536> chunk{};
      const ssize_t got = ::read(input_fd.get(), chunk.data(), chunk.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return system_error("cannot read from the agent");
      if (got == 0) return Error{Code::kUnavailable, "the agent closed the channel to this worker"};
      input.append(std::string_view(chunk.data(), static_cast<std::size_t>(got)));
    }
  }

  Result<JsonReader> next_message() {
    REGATTA_TRY(line, next_line());
    REGATTA_TRY(message, JsonReader::parse(line, "message of the agent"));
    static_cast<void>(message.members());  // an error where it is no object
    return message.finish(message);
  }
};

namespace {

// Reads {"peers": [...], "ports": [[49152, 49153], [], ...], "ways": 4}.
WorkerChannel::PlannedPorts read_ports(const JsonReader& reply, std::size_t ranks) {
  WorkerChannel::PlannedPorts planned;
  if (!reply.has("ports")) return planned;
  reply.read("ports", planned.to_rank);
  reply.read("ways", planned.ways, IntRange{});
  if (planned.to_rank.size() != ranks)
    reply.at("ports").fail(fmt::format("expected a list for each of {} ranks", ranks));
  return planned;
}

}  // namespace

WorkerChannel::WorkerChannel(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WorkerChannel::WorkerChannel(WorkerChannel&&) noexcept = default;
WorkerChannel& WorkerChannel::operator=(WorkerChannel&&) noexcept = default;
WorkerChannel::~WorkerChannel() = default;

WorkerChannel WorkerChannel::over(int input_fd, int output_fd) {
  auto impl = std::make_unique<Impl>();
  impl->input_fd = os::UniqueFd(input_fd);
  impl->output_fd = os::UniqueFd(output_fd);
  return WorkerChannel(std::move(impl));
}

Result<WorkerChannel> WorkerChannel::open() {
  std::signal(SIGPIPE, SIG_IGN);
  auto impl = std::make_unique<Impl>();
  impl->input_fd = os::UniqueFd(::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!impl->input_fd) return system_error("cannot take over standard input");
  impl->output_fd = os::UniqueFd(::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3));
  if (!impl->output_fd) return system_error("cannot take over standard output");
  const os::UniqueFd null_fd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!null_fd) return system_error("cannot open /dev/null");
  if (::dup2(null_fd.get(), STDIN_FILENO) < 0 || ::dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
    return system_error("cannot replace standard input and output");
  return WorkerChannel(std::move(impl));
}

Result<nlohmann::json> WorkerChannel::receive_spec() {
  REGATTA_TRY(message, impl_->next_message());
  return message.raw();
}

Result<std::vector<std::string>> WorkerChannel::exchange(const std::string& mine) {
  REGATTA_TRY_DO(emit({{"event", "endpoint"}, {"text", mine}}));
  REGATTA_TRY(reply, impl_->next_message());
  std::vector<std::string> texts;
  reply.read("peers", texts);
  PlannedPorts planned = read_ports(reply, texts.size());
  REGATTA_TRY_DO(reply.status());
  impl_->planned = std::move(planned);
  return texts;
}

const WorkerChannel::PlannedPorts& WorkerChannel::planned_ports() const {
  return impl_->planned;
}

Status WorkerChannel::emit(const nlohmann::json& event) {
  // Text from outside (a path, a library's message) may be no UTF-8; it must not end the worker.
  std::string line = event.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  line.push_back('\n');
  const MutexLock lock(impl_->output_mutex);
  return write_all(impl_->output_fd.get(), line);
}

Status WorkerChannel::emit_error(const Error& error) {
  return emit({{"event", "error"}, {"code", to_string(error.code)}, {"message", error.message}});
}

std::string to_string(Code code) {
  return enum_name(kCodeNames, code);
}

Error error_of_event(const nlohmann::json& event) {
  Error error;
  const JsonReader reader(event, "error");
  reader.read_if("message", error.message);
  reader.read_if("code", error.code, kCodeNames);
  return error;
}

}  // namespace regatta::rpc
