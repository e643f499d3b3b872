// cli/worker_main.cc: regatta-worker MODE: one rank of a job, started by an agent; speaks
// rpc::WorkerChannel on its standard input and output. MODE: train, measure.
#include <csignal>
#include <cstdio>
#include <exception>
#include <string_view>
#include <thread>

#include <nlohmann/json.hpp>
#include <pthread.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/rpc/worker_channel.h"
#include "regatta/gpu/device/device.h"
#include "regatta/runtime/measure/worker.h"
#include "regatta/runtime/train/worker.h"

namespace regatta {
namespace {

// SIGTERM and SIGINT are handled by a thread of their own, which requests the end of the training
// between two micro-batches, and ends the process when that lasts longer than a second.
void handle_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::thread([signals] {
    int taken = 0;
    sigwait(&signals, &taken);
    train::stop_worker();
    os::sleep_for(Seconds{1});
    ::_exit(1);
  }).detach();
}

using Mode = Status (*)(const nlohmann::json& spec, rpc::WorkerChannel& channel);

// nullptr when the command line names none, or more.
Mode mode_of(int argc, char** argv) {
  const std::string_view word = argc == 2 ? argv[1] : "";
  if (word == "train") return &train::run_train_worker;
  if (word == "measure") return &measure::run_measure_worker;
  return nullptr;
}

Status run_mode(Mode mode, rpc::WorkerChannel& channel) {
  REGATTA_TRY(spec, channel.receive_spec());
  return mode(spec, channel);
}

int run(int argc, char** argv) {
  // Libraries of mathematics start their threads and choose their kernels when they are loaded,
  // before main: start again with the environment for both.
  if (device::prepare_math_environment()) ::execv("/proc/self/exe", argv);
  const Mode mode = mode_of(argc, argv);
  if (mode == nullptr) {
    std::fputs("regatta-worker: give it one mode, train or measure; regatta-agent starts it\n",
               stderr);
    return 2;
  }
  handle_signals();
  device::prepare_process();
  auto channel = rpc::WorkerChannel::open();
  if (!channel) {
    os::log_error(channel.error().message);
    return 1;
  }
  Status done = run_mode(mode, *channel);
  if (done) done = channel->emit({{"event", "done"}});
  if (done) return 0;
  static_cast<void>(channel->emit_error(done.error()));
  return 1;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  try {
    return regatta::run(argc, argv);
  } catch (const std::exception& failure) {
    regatta::os::log_error(failure.what());
    return 1;
  }
}
