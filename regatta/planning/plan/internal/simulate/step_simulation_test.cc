#include "regatta/planning/plan/internal/simulate/step_simulation.h"

#include <gtest/gtest.h>

namespace regatta::plan {
namespace {

using workload::Phase;

StepAction compute(double seconds) {
  return {StepActionKind::kCompute, Phase::kForward, 0, -1, seconds, -1};
}
StepAction post(int operation) {
  return {StepActionKind::kPost, Phase::kOther, 0, -1, 0, operation};
}
StepAction wait(int operation, Phase phase) {
  return {StepActionKind::kWait, phase, 0, -1, 0, operation};
}

TEST(SimulateStep, CutsAWaitIntoBubbleAndTransfer) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 20}};
  program.operations = {{0, 0.5, 1, -1, Phase::kPpComm, 0}};
  program.groups = {{compute(3), post(0)}, {wait(0, Phase::kPpComm), compute(1)}};
  const StepSimulation result = simulate_step(program, {10});
  EXPECT_DOUBLE_EQ(result.end, 6.5);
  ASSERT_EQ(result.groups[1].size(), 3U);
  EXPECT_EQ(result.groups[1][0].phase, Phase::kBubble);
  EXPECT_DOUBLE_EQ(result.groups[1][0].end, 3.5);
  EXPECT_EQ(result.groups[1][1].phase, Phase::kPpComm);
  EXPECT_DOUBLE_EQ(result.groups[1][1].end, 5.5);
  EXPECT_EQ(result.groups[1][2].phase, Phase::kForward);
}

TEST(SimulateStep, HidesATransferBehindComputation) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 20}};
  program.operations = {{0, 0, 1, -1, Phase::kTpComm, 0}};
  program.groups = {{post(0), compute(5), wait(0, Phase::kTpComm)}};
  EXPECT_DOUBLE_EQ(simulate_step(program, {10}).end, 5);
  EXPECT_DOUBLE_EQ(simulate_step(program, {2}).end, 10);
}

TEST(SimulateStep, WaitsForEveryMember) {
  StepProgram program;
  program.operations = {{-1, 0.25, 2, -1, Phase::kDpComm, -1}};
  program.groups = {{compute(1), post(0), wait(0, Phase::kDpComm)},
                    {compute(4), post(0), wait(0, Phase::kDpComm)}};
  const StepSimulation result = simulate_step(program, {});
  EXPECT_DOUBLE_EQ(result.end, 4.25);
  EXPECT_DOUBLE_EQ(result.groups[0].back().end, 4.25);
}

TEST(SimulateStep, RunsAChannelInOrder) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 10}};
  program.operations = {{0, 1, 1, 0, Phase::kDpComm, -1}, {0, 1, 1, 0, Phase::kDpComm, -1}};
  program.channels = 1;
  program.groups = {{post(0), post(1), wait(0, Phase::kDpComm), wait(1, Phase::kDpComm)}};
  const StepSimulation result = simulate_step(program, {10});
  EXPECT_DOUBLE_EQ(result.operations[0].ended, 2);
  EXPECT_DOUBLE_EQ(result.operations[1].started, 2);
  EXPECT_DOUBLE_EQ(result.end, 4);
}

TEST(SimulateStep, SharesALinkBetweenTransfersUnderWay) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 10}};
  program.operations = {{0, 0, 1, -1, Phase::kDpComm, -1}, {0, 0, 1, -1, Phase::kDpComm, -1}};
  program.groups = {{post(0), wait(0, Phase::kDpComm)},
                    {compute(0.5), post(1), wait(1, Phase::kDpComm)}};
  const StepSimulation result = simulate_step(program, {10});
  EXPECT_DOUBLE_EQ(result.operations[0].ended, 1.5);
  EXPECT_DOUBLE_EQ(result.operations[1].ended, 2);
}

}  // namespace
}  // namespace regatta::plan
