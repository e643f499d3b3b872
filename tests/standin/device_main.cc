// regatta-standin-device: one stand-in GPU, until its parent ends.
#include <csignal>
#include <cstdio>
#include <iostream>
#include <string>
#include <utility>

#include <CLI/CLI.hpp>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "tests/standin/server.h"

namespace {

using namespace regatta;

struct Options {
  std::string socket;
  std::string memory = "8GiB";
  std::string context_memory = "0B";
  std::string copy_speed = "25GB/s";
  unsigned processors = 132;
  unsigned time_slice_us = 1000;
  unsigned sample_period_ms = 500;
  bool simulated = false;
};

Result<standin::Settings> settings_of(const Options& options) {
  REGATTA_TRY(memory, parse_bytes(options.memory));
  REGATTA_TRY(context, parse_bytes(options.context_memory));
  REGATTA_TRY(speed, parse_bytes_per_second(options.copy_speed));
  if (memory.value <= 0 || context.value < 0 || speed.value <= 0)
    return Error{Code::kInvalidInput,
                 "--memory and --copy-speed: give more than nothing, such as 8GiB and 25GB/s"};
  return standin::Settings{.memory_bytes = static_cast<std::uint64_t>(memory.value),
                           .context_bytes = static_cast<std::uint64_t>(context.value),
                           .processors = options.processors,
                           .host_copy_rate = speed.value,
                           .time_slice = std::chrono::microseconds(options.time_slice_us),
                           .sample_period = std::chrono::milliseconds(options.sample_period_ms)};
}

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

// Replaces a socket without a listener. The name appears only once it can be connected to, so a
// process that waits for the name need not try twice.
Result<os::UniqueFd> listen_at(const std::string& path) {
  const std::string early = path + ".new";
  if (early.size() >= sizeof sockaddr_un{}.sun_path)
    return Error{Code::kInvalidInput, "socket " + path + ": longer than 103 letters; shorten it"};
  const sockaddr_un address = address_of(path);
  const sockaddr_un early_address = address_of(early);
  os::UniqueFd socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0)
    return Error{Code::kConflict, "socket " + path + ": a device serves it already"};
  unlink(early.c_str());
  socket.reset(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (bind(socket.get(), reinterpret_cast<const sockaddr*>(&early_address), sizeof address) != 0 ||
      listen(socket.get(), 1024) != 0 || rename(early.c_str(), path.c_str()) != 0)
    return os::errno_error("cannot listen at " + path);
  return socket;
}

Status serve(const Options& options) {
  REGATTA_TRY(settings, settings_of(options));
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  prctl(PR_SET_TIMERSLACK, 1);  // short kernels end on time
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM);
  sigaddset(&ends, SIGINT);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const os::UniqueFd stop(signalfd(-1, &ends, SFD_CLOEXEC));
  REGATTA_TRY(listener, listen_at(options.socket));
  standin::Server server(std::move(listener), settings, options.simulated);
  const Status done = server.run(stop.get());
  unlink(options.socket.c_str());
  return done;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("A stand-in GPU that the processes with REGATTA_STANDIN=SOCKET share.");
  Options options;
  app.add_option("--socket", options.socket, "where to listen")->required();
  app.add_option("--memory", options.memory, "of the device (8GiB)");
  app.add_option("--context-memory", options.context_memory, "that every context takes (0B)");
  app.add_option("--copy-speed", options.copy_speed, "to and from the host (25GB/s)");
  app.add_option("--processors", options.processors, "of the device (132)")
      ->check(CLI::PositiveNumber);
  app.add_option("--time-slice-us", options.time_slice_us, "of a context among several (1000)")
      ->check(CLI::PositiveNumber);
  app.add_option("--sample-period-ms", options.sample_period_ms,
                 "over which its use is sampled for those who watch it (500)")
      ->check(CLI::Range(1, 1000));
  app.add_flag("--simulated", options.simulated, "time goes on only while everybody waits for it");
  CLI11_PARSE(app, argc, argv);
  const auto done = serve(options);
  if (done) return 0;
  std::cerr << "regatta-standin-device: " << done.error().message << '\n';
  return exit_status(done.error());
}
