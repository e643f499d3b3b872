#include "regatta/network/lab/internal/holder.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/lab/internal/control.h"
#include "regatta/network/lab/internal/devices.h"
#include "regatta/network/lab/internal/network.h"
#include "regatta/network/lab/internal/remove.h"

namespace regatta::lab {
namespace {

constexpr Seconds kBuildLimit{60};
constexpr int kReportFd = 3;  // in the holder, until it has reported
constexpr int kCallerFd = 4;  // in the holder: a pidfd of the process that called up()

// Writes `title` over the command line that the process was started with, whose place and size
// proc(5) gives as fields 48 and 49 of stat: what ps shows.
void set_title(const std::string& title) {
  ::prctl(PR_SET_NAME, "regatta-lab");
  const auto stat = os::read_file("/proc/self/stat");
  if (!stat) return;
  const auto fields = split(std::string_view(*stat).substr(stat->rfind(')') + 2), ' ');
  if (fields.size() < 47) return;
  const auto start = static_cast<std::uintptr_t>(std::strtoull(fields[45].c_str(), nullptr, 10));
  const auto end = static_cast<std::uintptr_t>(std::strtoull(fields[46].c_str(), nullptr, 10));
  if (start == 0 || end <= start) return;
  auto* place =
      reinterpret_cast<char*>(start);  // NOLINT(performance-no-int-to-ptr): from the kernel
  std::memset(place, 0, end - start);
  std::copy_n(title.data(), std::min<std::size_t>(title.size(), end - start - 1), place);
}

// Nothing of the caller may keep a pipe, port or terminal of it busy.
Status detach(const os::UniqueFd& report, const os::UniqueFd& caller) {
  ::setsid();
  static_cast<void>(::chdir("/") == 0);
  // First away from the descriptors that are set below.
  const int report_copy = ::fcntl(report.get(), F_DUPFD, 10);
  const int caller_copy = caller ? ::fcntl(caller.get(), F_DUPFD, 10) : -1;
  const int null = ::open("/dev/null", O_RDWR);
  for (const int standard : {0, 1, 2})
    ::dup2(null, standard);
  ::dup2(report_copy, kReportFd);
  if (caller) ::dup2(caller_copy, kCallerFd);
  const Status closed = os::close_descriptors_from(caller ? kCallerFd + 1 : kReportFd + 1);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  for (const int signal : {SIGINT, SIGTERM, SIGCHLD, SIGQUIT})
    ::signal(signal, SIG_DFL);
  for (const int signal : {SIGHUP, SIGPIPE})
    ::signal(signal, SIG_IGN);
  return closed;
}

// Root makes network namespaces directly; anyone else, and a root without the right, inside one
// user namespace for the whole lab.
Status enter_privilege(LabState& state) {
  if (::geteuid() == 0) {
    REGATTA_TRY(home, os::open_network_namespace());
    const Status direct = os::enter_new_network_namespace();
    if (direct) return os::enter_network_namespace(home);
  }
  state.info.user_namespace = true;
  return os::enter_new_user_namespace();
}

Status record_namespaces(const Network& network, const Blueprint& blueprint, LabState& state) {
  for (std::size_t i = 0; i < blueprint.nodes.size(); ++i) {
    NodeState node;
    node.name = blueprint.nodes[i].name;
    node.holder_fd = network.space(i).get();
    REGATTA_TRY(inode, os::namespace_inode(network.space(i)));
    REGATTA_TRY(scope, os::NetworkNamespaceScope::enter(network.space(i)));
    REGATTA_TRY(cookie, os::network_namespace_cookie());
    node.inode = inode;
    node.cookie = cookie;
    state.nodes.push_back(std::move(node));
  }
  return {};
}

enum class Operation { kLinks, kDown, kSlow, kDrop, kSwap, kClear, kConverge, kHeard };
constexpr EnumNames<8> kOperations = {"links", "down",  "slow",     "drop",
                                      "swap",  "clear", "converge", "heard"};

struct Request {
  Operation operation = Operation::kLinks;
  std::string link;  // "": all, of kClear
  std::string other;
  BytesPerSecond rate;
  double share = 0;
  std::size_t first = 0;
  bool on = true;
};

Result<Request> read_request(const JsonReader& message) {
  Request request;
  message.read("op", request.operation, kOperations);
  message.read_if("link", request.link);
  message.read_if("other", request.other);
  message.read_if("rate_Bps", request.rate, kNotNegative);
  message.read_if("share", request.share, NumberRange{.low = 0, .high = 1});
  message.read_if("first", request.first);
  message.read_if("on", request.on);
  return message.finish(request);
}

Status change_link(Network& network, const Request& request) {
  const auto link = network.find(request.link);
  if (!link) return Error{Code::kNotFound, "link " + request.link + ": not in this lab"};
  if (request.operation == Operation::kDown) return network.take_down(*link);
  if (request.operation == Operation::kSlow) return network.slow(*link, request.rate);
  if (request.operation == Operation::kDrop) return network.drop(*link, request.share);
  if (request.operation == Operation::kSwap) {
    const auto other = network.find(request.other);
    if (other) return network.swap(*link, *other);
    return Error{Code::kNotFound, "link " + request.other + ": not in this lab"};
  }
  return network.clear(*link);
}

Result<nlohmann::json> handle(Network& network, const JsonReader& message) {
  REGATTA_TRY(request, read_request(message));
  if (request.operation == Operation::kLinks) {
    REGATTA_TRY(states, network.states());
    return links_to_json(states, request.first);
  }
  if (request.operation == Operation::kHeard) {
    REGATTA_TRY(heard, network.heard_ports());
    return nlohmann::json{{"heard", heard}};
  }
  if (request.operation == Operation::kConverge) {
    network.set_converging(request.on);
  } else if (request.operation == Operation::kClear && request.link.empty()) {
    for (std::size_t i = 0; i < network.link_count(); ++i)
      REGATTA_TRY_DO(network.clear(i));
  } else {
    REGATTA_TRY_DO(change_link(network, request));
  }
  return nlohmann::json::object();
}

struct Built {
  Network network;
  net::LineServer server;
};

// Records the facts that are known before anything is built.
Status identify(const Blueprint& blueprint, LabState& state) {
  REGATTA_TRY(self, os::read_process(::getpid()));
  REGATTA_TRY(boot_id, os::boot_id());
  state.info.name = blueprint.name;
  state.info.holder = self.pid;
  state.holder_start = self.start_time;
  state.boot_id = boot_id;
  state.description = blueprint.description;
  for (std::size_t s = 0; s < blueprint.nic_addresses.size(); ++s) {
    state.info.servers.push_back({blueprint.nodes[s].name, blueprint.nic_addresses[s], {}});
  }
  return save_state(state);
}

Result<Built> build(const Blueprint& blueprint, LabState& state) {
  const Seconds start = os::monotonic_now();
  REGATTA_TRY_DO(identify(blueprint, state));
  REGATTA_TRY_DO(make_devices(blueprint, state));
  REGATTA_TRY_DO(enter_privilege(state));
  REGATTA_TRY(network, Network::build(blueprint));
  REGATTA_TRY_DO(record_namespaces(network, blueprint, state));
  REGATTA_TRY(server, listen_for_requests(state.info.folder));
  state.ready = true;
  state.info.up_seconds = (os::monotonic_now() - start).value;
  REGATTA_TRY_DO(save_state(state));
  return Built{std::move(network), std::move(server)};
}

void report(const nlohmann::json& message) {
  const std::string text = message.dump();
  static_cast<void>(::write(kReportFd, text.data(), text.size()) > 0);
  ::close(kReportFd);
}

// Answers requests until `caller` (a pidfd, or nothing) has ended.
void serve(Built& built, const os::UniqueFd& caller) {
  std::array<pollfd, 2> waits{pollfd{built.server.fd(), POLLIN, 0},
                              pollfd{caller.get(), POLLIN, 0}};  // a negative one is passed over
  for (;;) {
    if (::poll(waits.data(), waits.size(), -1) < 0) continue;
    if (waits[1].revents != 0) return;
    serve_requests(built.server, Seconds{0},
                   [&](const JsonReader& message) { return handle(built.network, message); });
  }
}

// Orders to the holder before it detaches.
struct Orders {
  const Blueprint& blueprint;
  const std::string& folder;
  const os::UniqueFd& report;
  const os::UniqueFd& caller;
};

[[noreturn]] void run_holder(const Orders& orders) {
  const Status detached = detach(orders.report, orders.caller);
  set_title("regatta-lab " + orders.blueprint.name);
  const os::UniqueFd caller(orders.caller ? kCallerFd : -1);
  LabState state;
  state.info.folder = orders.folder;
  auto built = detached ? build(orders.blueprint, state) : Result<Built>(detached.error());
  if (!built) {
    report(to_json(built.error()));
    ::_exit(1);
  }
  report(to_json(state.info));
  serve(*built, caller);
  // The next up() repeats cleanup that fails here: the holder is dead by then.
  const auto lock = lock_labs();
  ::_exit(lock && remove_contents(state) ? 0 : 1);
}

Result<std::string> read_report(const os::UniqueFd& pipe, const std::string& name) {
  const Seconds end = os::monotonic_now() + kBuildLimit;
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const double left = (end - os::monotonic_now()).value;
    if (left <= 0) {
      return Error{Code::kTimeout,
                   fmt::format("lab {}: not built within {:.0f} s", name, kBuildLimit.value)};
    }
    pollfd entry{pipe.get(), POLLIN, 0};
    if (::poll(&entry, 1, static_cast<int>(left * 1e3) + 1) <= 0) continue;
    const ssize_t count = ::read(pipe.get(), block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os::errno_error("report of the lab");
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace

Result<LabInfo> start_holder(const Blueprint& blueprint, const std::string& folder,
                             const UpOptions& options) {
  REGATTA_TRY(pipe, os::make_pipe());
  os::UniqueFd caller;
  if (options.die_with_caller) {
    REGATTA_TRY(self, os::open_pidfd(::getpid()));
    caller = std::move(self);
  }
  const pid_t child = ::fork();
  if (child < 0) return os::errno_error("fork");
  if (child == 0) {
    // A second fork: the holder is nobody's child, so nobody has to wait for it.
    const pid_t holder = ::fork();
    if (holder == 0) run_holder({blueprint, folder, pipe.write_end, caller});
    ::_exit(holder > 0 ? 0 : 1);
  }
  pipe.write_end.reset();
  while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
  REGATTA_TRY(text, read_report(pipe.read_end, blueprint.name));
  const auto answer = JsonReader::parse(text, fmt::format("lab {}: its report", blueprint.name));
  if (!answer) {
    return Error{Code::kUnavailable,
                 fmt::format("lab {}: its holder ended while building", blueprint.name)};
  }
  if (const auto error = read_error(*answer))
    return Error{error->code, fmt::format("lab {}: {}", blueprint.name, error->message)};
  return answer->finish(read_info(*answer));
}

}  // namespace regatta::lab
