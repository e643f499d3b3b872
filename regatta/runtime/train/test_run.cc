#include "regatta/runtime/train/test_run.h"

#include <atomic>
#include <fstream>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/gpu/device/device.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::train::test {
namespace {

// English-like: the bytes repeat enough that a tiny model learns something in 30 steps.
const std::string& text_file() {
  static const os::TempFolder folder = test_folder();
  static const std::string path = [] {
    std::string name = folder.path() + "/text";
    std::ofstream file(name, std::ios::binary);
    for (int i = 0; i < 400; ++i)
      file << "the boat " << i * 37 % 101 << " leads the regatta by " << i % 7 << " lengths\n";
    return name;
  }();
  return path;
}

Status run_rank(const TrainSpec& spec, comm::LocalExchange& exchange,
                std::vector<StepReport>& steps) {
  std::optional<comm::Communicator> world;
  if (spec.world_size > 1) {
    comm::CommunicatorOptions options;
    options.job_token = spec.job_token;
    options.server = spec.server;
    REGATTA_TRY(made, comm::Communicator::connect(spec.rank, spec.world_size,
                                                  exchange.of(spec.rank.value), options));
    world = std::move(made);
  }
  REGATTA_TRY(groups,
              make_rank_communicators(std::move(world), spec.rank, spec.strategy, spec.job.model));
  const TrainHooks hooks{.on_step = [&](const StepReport& report) { steps.push_back(report); },
                         .stop_requested = {}};
  return train(spec, groups, hooks);
}

}  // namespace

workload::Job tiny_job() {
  workload::Job job;
  job.name = "tiny";
  job.model.layers = 4;
  job.model.hidden = 32;
  job.model.heads = 4;
  job.model.ffn_hidden = 64;
  job.model.seq = 16;
  job.model.vocab = 256;
  job.data_text = text_file();
  job.global_batch = 8;
  job.steps = 30;
  job.optimizer.lr = 3e-3;
  job.seed = 7;
  return job;
}

std::vector<RankOutcome> run_job(const workload::Job& job, const workload::Strategy& strategy,
                                 const TestRunOptions& options) {
  static std::atomic<int> runs{0};
  static const bool prepared = [] {
    device::prepare_process();
    return true;
  }();
  static_cast<void>(prepared);
  const int world_size = strategy.world_size();
  const std::string token = fmt::format("train-test-{}", runs++);
  comm::LocalExchange exchange(world_size);
  std::vector<RankOutcome> outcomes(static_cast<std::size_t>(world_size));
  std::vector<std::thread> threads;
  threads.reserve(outcomes.size());
  for (int rank = 0; rank < world_size; ++rank) {
    threads.emplace_back([&, rank] {
      TrainSpec spec;
      spec.job = job;
      spec.strategy = strategy;
      spec.resume = options.resume;
      spec.trace_to_step = options.trace_to_step;
      spec.rank = Rank{rank};
      spec.world_size = world_size;
      // Two ranks a server: both transports carry something.
      spec.server = fmt::format("s{}", rank / 2);
      spec.job_token = token;
      RankOutcome& outcome = at(outcomes, rank);
      outcome.status = run_rank(spec, exchange, outcome.steps);
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  return outcomes;
}

std::vector<double> losses_of(const std::vector<RankOutcome>& outcomes) {
  std::vector<double> losses;
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    const RankOutcome& outcome = outcomes[rank];
    EXPECT_TRUE(outcome.status) << "rank " << rank << ": " << outcome.status.error().message;
    std::vector<double> mine;
    for (const StepReport& step : outcome.steps)
      mine.push_back(step.loss);
    if (rank == 0) losses = mine;
    EXPECT_EQ(mine, losses) << "rank " << rank;
  }
  return losses;
}

os::TempFolder test_folder() {
  auto folder = os::TempFolder::create("regatta-train");
  REGATTA_CHECK(folder.has_value());
  return std::move(*folder);
}

}  // namespace regatta::train::test
