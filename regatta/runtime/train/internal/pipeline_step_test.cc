#include "regatta/runtime/train/internal/pipeline_step.h"

#include <algorithm>
#include <string>
#include <thread>

#include <ATen/ops/full.h>
#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/os/clock.h"
#include "regatta/runtime/comm/test_world.h"

namespace regatta::train {
namespace {

// Rank 0 sends to rank 1 after `delay`; returns rank 1's times from posting to receiving.
StepTimes receive_after(Seconds delay, const std::string& second_server) {
  const c10::InferenceMode inference;
  comm::LocalExchange exchange(2);
  const auto join = [&](int rank) {
    comm::CommunicatorOptions options;
    options.job_token = "pipeline";
    options.server = rank == 0 ? "s0" : second_server;
    return comm::Communicator::connect(Rank{rank}, 2, exchange.of(rank), options);
  };
  std::thread sender([&] {
    const c10::InferenceMode sender_inference;
    auto pair = join(0);
    ASSERT_TRUE(pair) << pair.error().message;
    PhaseClock clock(Rank{0});
    clock.start(0, false);
    TpGroup alone(nullptr, clock);
    StageTransfers transfers(nullptr, &*pair, alone, {300, 100}, at::kFloat);
    os::sleep_for(delay);
    transfers.send(at::full({300, 100}, 3.0));
    EXPECT_TRUE(transfers.finish_sends());
  });
  auto pair = join(1);
  PhaseClock clock(Rank{1});
  clock.start(0, false);
  TpGroup alone(nullptr, clock);
  StageTransfers transfers(&*pair, nullptr, alone, {300, 100}, at::kFloat);
  transfers.begin_step(1);
  const auto received = transfers.receive(0);
  sender.join();
  EXPECT_TRUE(received && received->equal(at::full({300, 100}, 3.0)));
  return clock.finish_step(false);
}

TEST(StageTransfers, CountWaitingForALateSenderAsBubble) {
  for (const char* server : {"s0", "s1"}) {
    const StepTimes times = receive_after(Seconds{0.1}, server);
    EXPECT_GT(times.phases[workload::Phase::kBubble].value, 0.08);
    EXPECT_LT(times.phases[workload::Phase::kPpComm].value, 0.05);
  }
}

}  // namespace
}  // namespace regatta::train
