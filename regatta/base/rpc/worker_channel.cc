#include "regatta/base/rpc/worker_channel.h"

#include <array>
#include <cerrno>
#include <csignal>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::rpc {
namespace {

struct CodeName {
  Code code;
  std::string_view name;
};
constexpr std::array<CodeName, 7> kCodeNames{{{Code::kInvalidInput, "invalid_input"},
                                              {Code::kNotFound, "not_found"},
                                              {Code::kConflict, "conflict"},
                                              {Code::kExhausted, "exhausted"},
                                              {Code::kUnavailable, "unavailable"},
                                              {Code::kTimeout, "timeout"},
                                              {Code::kUnsupported, "unsupported"}}};

// Whatever the reason: the way to the agent is gone, not a part of the work refused.
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
  std::mutex output_mutex;

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

  Result<nlohmann::json> next_object() {
    REGATTA_TRY(line, next_line());
    auto object = nlohmann::json::parse(line, nullptr, false);
    if (!object.is_object()) {
      return Error{Code::kInvalidInput,
                   fmt::format("the agent's line is no JSON object: \"{}\"", line.substr(0, 80))};
    }
    return object;
  }
};

namespace {

// Of {"peers": [...], "ports": [[49152, 49153], [], ...], "ways": 4}.
Result<WorkerChannel::PlannedPorts> read_ports(const nlohmann::json& reply, std::size_t ranks) {
  WorkerChannel::PlannedPorts planned;
  const auto ports = reply.find("ports");
  if (ports == reply.end()) return planned;
  try {
    planned.to_rank = ports->get<std::vector<std::vector<std::uint16_t>>>();
    planned.ways = reply.at("ways").get<int>();
  } catch (const nlohmann::json::exception&) {
    planned.to_rank.clear();
  }
  if (planned.to_rank.size() == ranks && planned.ways >= 1) return planned;
  return Error{Code::kInvalidInput,
               "the agent's \"ports\" are no list of numbers for each rank, with their \"ways\""};
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
  return impl_->next_object();
}

Result<std::vector<std::string>> WorkerChannel::exchange(const std::string& mine) {
  REGATTA_TRY_DO(emit({{"event", "endpoint"}, {"text", mine}}));
  REGATTA_TRY(reply, impl_->next_object());
  const auto peers = reply.find("peers");
  if (peers == reply.end() || !peers->is_array()) {
    return Error{Code::kInvalidInput, "the agent's answer to an endpoint has no list \"peers\""};
  }
  std::vector<std::string> texts;
  for (const auto& peer : *peers) {
    if (!peer.is_string()) {
      return Error{Code::kInvalidInput, "the agent's list \"peers\" holds more than texts"};
    }
    texts.push_back(peer.get<std::string>());
  }
  REGATTA_TRY(planned, read_ports(reply, texts.size()));
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
  const std::lock_guard lock(impl_->output_mutex);
  return write_all(impl_->output_fd.get(), line);
}

Status WorkerChannel::emit_error(const Error& error) {
  return emit({{"event", "error"}, {"code", to_string(error.code)}, {"message", error.message}});
}

std::string to_string(Code code) {
  for (const auto& entry : kCodeNames) {
    if (entry.code == code) return std::string(entry.name);
  }
  return "unavailable";
}

Error error_of_event(const nlohmann::json& event) {
  Error error;
  if (const auto message = event.find("message"); message != event.end() && message->is_string()) {
    error.message = message->get<std::string>();
  }
  if (const auto code = event.find("code"); code != event.end() && code->is_string()) {
    for (const auto& entry : kCodeNames) {
      if (*code == entry.name) error.code = entry.code;
    }
  }
  return error;
}

}  // namespace regatta::rpc
