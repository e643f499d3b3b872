// regatta-trainer: one rank of a training job of the platform; its agent starts it. Its task comes
// by the environment: REGATTA_TRAINING (the job as JSON) and the variables of a gang. Exit status:
// 0 done, 1 the work failed, 2 the input is wrong.

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/trainer/gang_plan.h"
#include "regatta/platform/trainer/internal/gang_coordinator.h"
#include "regatta/platform/trainer/internal/gang_rank.h"
#include "regatta/platform/trainer/training_request.h"

namespace regatta::trainer {
namespace {

std::atomic<bool> g_stop{false};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr ? value : "";
}

Result<int> number(const char* name) {
  const auto value = parse_number<int>(variable(name));
  if (!value || *value < 0)
    return Error{Code::kInvalidInput,
                 fmt::format("{}: no whole number; submit the job to the platform, which sets it "
                             "for each rank",
                             name)};
  return *value;
}

// The folder of checkpoints that the platform gives stands in for one that the job does not name.
void set_checkpoint_folder(workload::Job& job) {
  if (job.checkpoint.folder.empty()) job.checkpoint.folder = variable("REGATTA_CHECKPOINT_FOLDER");
}

Status run() {
  REGATTA_TRY(job, parse_training(variable(kTrainingVariable)));
  set_checkpoint_folder(job);
  REGATTA_TRY(rank, number("RANK"));
  REGATTA_TRY(world_size, number("WORLD_SIZE"));
  RankOptions options;
  options.coordinator = {variable("MASTER_ADDR"), variable("MASTER_PORT")};
  options.gang = variable("REGATTA_JOB") + "." + variable("REGATTA_ATTEMPT");
  options.member = {.rank = rank,
                    .node = variable("REGATTA_NODE"),
                    .host = os::boot_id().value_or("unknown"),
                    .cores = os::usable_cores(),
                    .address = variable("REGATTA_ADDRESS")};
  REGATTA_TRY(folder, os::executable_folder());
  options.worker = folder + "/regatta-worker";
  if (rank > 0) return run_rank(options);
  REGATTA_TRY(coordinator,
              GangCoordinator::listen({.listen = options.coordinator,
                                       .gang = options.gang,
                                       .world_size = world_size,
                                       .job = job,
                                       .metrics_file = variable("REGATTA_METRICS_FILE")}));
  Status coordinated;
  std::thread thread = os::signal_masked_thread([&] { coordinated = coordinator.run(g_stop); });
  const Status ran = run_rank(options);
  // The others go on; only a failure of this rank ends them.
  if (!ran) g_stop = true;
  thread.join();
  if (!coordinated) return coordinated;
  return ran;
}

}  // namespace
}  // namespace regatta::trainer

int main() {
  // The worker gets the signal as well, and ends at once; then this process does. A handler, for a
  // signal that is ignored would be ignored by the worker, too.
  std::signal(SIGTERM, [](int) {});
  std::signal(SIGPIPE, SIG_IGN);
  try {
    const regatta::Status done = regatta::trainer::run();
    if (done) return 0;
    std::fprintf(stderr, "regatta-trainer: %s\n", done.error().message.c_str());
    return regatta::exit_status(done.error());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta-trainer: bug: %s; please report it\n", error.what());
    return 1;
  }
}
