#include "regatta/runtime/bench/peers.h"

#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::bench {
namespace {

std::string text_of(const os::UniqueFd& file) {
  std::string text;
  char buffer[4096];
  ::lseek(file.get(), 0, SEEK_SET);
  for (ssize_t got = ::read(file.get(), buffer, sizeof buffer); got > 0;
       got = ::read(file.get(), buffer, sizeof buffer))
    text.append(buffer, static_cast<std::size_t>(got));
  return text;
}

Result<os::UniqueFd> open_memory(const char* name) {
  os::UniqueFd file(::memfd_create(name, MFD_CLOEXEC));
  if (!file) return os::errno_error("keep the output of a peer");
  return file;
}

// The folder of the rendezvous of Gloo's processes.
class RendezvousFolder {
 public:
  RendezvousFolder() = default;
  RendezvousFolder(const RendezvousFolder&) = delete;
  RendezvousFolder& operator=(const RendezvousFolder&) = delete;
  ~RendezvousFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  Status make() {
    std::error_code error;
    const auto parent = std::filesystem::temp_directory_path(error);
    std::string name = (error ? "/tmp" : parent.string()) + "/regatta-bench-XXXXXX";
    if (::mkdtemp(name.data()) == nullptr) return os::errno_error("make the folder " + name);
    path_ = name;
    return {};
  }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

std::vector<std::string> arguments_of(const std::string& program, const BenchTask& task) {
  std::vector<std::string> arguments = {program, to_string(task.op), std::to_string(task.batches)};
  for (const std::size_t size : task.sizes)
    arguments.push_back(std::to_string(size));
  return arguments;
}

// The command lines of the processes to start: a launcher, or Gloo's ranks themselves.
std::vector<std::vector<std::string>> commands_of(const std::string& peer,
                                                  const std::string& program, const BenchTask& task,
                                                  const std::string& folder) {
  const std::vector<std::string> work = arguments_of(program, task);
  const std::string ranks = std::to_string(task.ranks);
  std::vector<std::vector<std::string>> commands;
  if (peer == "gloo") {
    for (int rank = 0; rank < task.ranks; ++rank) {
      commands.push_back({program, folder, std::to_string(rank), ranks});
      commands.back().insert(commands.back().end(), work.begin() + 1, work.end());
    }
    return commands;
  }
  std::vector<std::string> command = {"mpirun." + peer, "-np", ranks};
  if (peer == "openmpi") command.insert(command.end(), {"--allow-run-as-root", "--oversubscribe"});
  command.insert(command.end(), work.begin(), work.end());
  return {command};
}

// Ends the running processes when it goes out of scope.
struct Processes {
  std::vector<pid_t> running;

  Processes() = default;
  Processes(const Processes&) = delete;
  Processes& operator=(const Processes&) = delete;
  ~Processes() {
    for (const pid_t pid : running)
      static_cast<void>(os::terminate(pid));
  }
};

// `errors`: its standard error, for the message.
Status wait_for_all(const std::string& peer, Processes& processes, const os::UniqueFd& errors) {
  const Seconds deadline = os::monotonic_now() + kPeerLimit;
  while (!processes.running.empty()) {
    const auto ended = os::wait_for(processes.running.back(), deadline - os::monotonic_now());
    if (!ended) {
      Error error = ended.error();
      if (error.code == Code::kTimeout)
        error.message = fmt::format("{}: not done after {:.0f} s; give fewer sizes or ranks", peer,
                                    kPeerLimit.value);
      return error;
    }
    processes.running.pop_back();
    if (ended->is_success()) continue;
    const std::vector<std::string> lines = split(text_of(errors), '\n');
    std::string last;
    for (const std::string& line : lines)
      if (!line.empty()) last = line;
    const bool lacks = ended->status == 77;  // bench/peers: no such operation
    return Error{lacks ? Code::kUnsupported : Code::kUnavailable,
                 fmt::format("{}: ended with {}{}{}", peer, to_string(*ended),
                             last.empty() ? "" : "; its last line was: ", last)};
  }
  return {};
}

// `name` stands for the line in errors.
Result<Timing> parse_line(const std::string& line, const std::string& name) {
  REGATTA_TRY(root, JsonReader::parse(line, name));
  Timing timing;
  root.read("wrong", timing.wrong);
  root.read("batches_s", timing.batches_s, kPositive);
  if (timing.batches_s.empty()) root.at("batches_s").fail("has no times");
  return root.finish(std::move(timing));
}

}  // namespace

Result<std::string> find_peer(const std::string& peer) {
  REGATTA_TRY(folder, os::executable_folder());
  std::string program = folder + "/regatta-peer-" + peer;
  if (::access(program.c_str(), X_OK) == 0) return program;
  return Error{Code::kUnsupported,
               fmt::format("{}: there is no program {}; scripts/peers.sh installs "
                           "the libraries and builds it",
                           peer, program)};
}

Result<Contender> run_peer(const std::string& peer, const BenchTask& task) {
  REGATTA_TRY(program, find_peer(peer));
  REGATTA_TRY(output, open_memory("peer-output"));
  REGATTA_TRY(errors, open_memory("peer-errors"));
  RendezvousFolder folder;
  REGATTA_TRY_DO(folder.make());
  Processes processes;
  os::SpawnOptions options;
  options.stdout_fd = output.get();
  options.stderr_fd = errors.get();
  for (const auto& command : commands_of(peer, program, task, folder.path())) {
    REGATTA_TRY(pid, os::spawn(command, options));
    processes.running.push_back(pid);
  }
  REGATTA_TRY_DO(wait_for_all(peer, processes, errors));
  return parse_peer_output(peer, task, text_of(output));
}

Result<Contender> parse_peer_output(const std::string& peer, const BenchTask& task,
                                    const std::string& text) {
  Contender contender{peer, {}};
  for (const std::string& line : split(text, '\n')) {
    if (line.empty()) continue;
    REGATTA_TRY(timing, parse_line(line, peer + ": line of times"));
    contender.timings.push_back(std::move(timing));
  }
  if (contender.timings.size() != task.sizes.size())
    return Error{Code::kInvalidInput,
                 fmt::format("{}: printed {} lines of times for {} sizes", peer,
                             contender.timings.size(), task.sizes.size())};
  return contender;
}

}  // namespace regatta::bench
