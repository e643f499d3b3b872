#include "regatta/planning/plan/internal/simulate.h"

#include <gtest/gtest.h>

namespace regatta::plan {
namespace {

using workload::Phase;

Action compute(double seconds) {
  return {ActionKind::kCompute, Phase::kForward, 0, -1, seconds, -1};
}
Action post(int operation) {
  return {ActionKind::kPost, Phase::kOther, 0, -1, 0, operation};
}
Action wait(int operation, Phase phase) {
  return {ActionKind::kWait, phase, 0, -1, 0, operation};
}

TEST(Simulate, CutsAWaitIntoBubbleAndTransfer) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 20}};
  program.operations = {{0, 0.5, 1, -1, Phase::kPpComm, 0}};
  program.cells = {{compute(3), post(0)}, {wait(0, Phase::kPpComm), compute(1)}};
  const Simulation result = simulate(program, {10});
  EXPECT_DOUBLE_EQ(result.end, 6.5);
  ASSERT_EQ(result.cells[1].size(), 3U);
  EXPECT_EQ(result.cells[1][0].phase, Phase::kBubble);
  EXPECT_DOUBLE_EQ(result.cells[1][0].end, 3.5);
  EXPECT_EQ(result.cells[1][1].phase, Phase::kPpComm);
  EXPECT_DOUBLE_EQ(result.cells[1][1].end, 5.5);
  EXPECT_EQ(result.cells[1][2].phase, Phase::kForward);
}

TEST(Simulate, HidesATransferBehindComputation) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 20}};
  program.operations = {{0, 0, 1, -1, Phase::kTpComm, 0}};
  program.cells = {{post(0), compute(5), wait(0, Phase::kTpComm)}};
  EXPECT_DOUBLE_EQ(simulate(program, {10}).end, 5);
  EXPECT_DOUBLE_EQ(simulate(program, {2}).end, 10);
}

TEST(Simulate, WaitsForEveryMember) {
  StepProgram program;
  program.operations = {{-1, 0.25, 2, -1, Phase::kDpComm, -1}};
  program.cells = {{compute(1), post(0), wait(0, Phase::kDpComm)},
                   {compute(4), post(0), wait(0, Phase::kDpComm)}};
  const Simulation result = simulate(program, {});
  EXPECT_DOUBLE_EQ(result.end, 4.25);
  EXPECT_DOUBLE_EQ(result.cells[0].back().end, 4.25);
}

TEST(Simulate, RunsAChannelInOrder) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 10}};
  program.operations = {{0, 1, 1, 0, Phase::kDpComm, -1}, {0, 1, 1, 0, Phase::kDpComm, -1}};
  program.channels = 1;
  program.cells = {{post(0), post(1), wait(0, Phase::kDpComm), wait(1, Phase::kDpComm)}};
  const Simulation result = simulate(program, {10});
  EXPECT_DOUBLE_EQ(result.operations[0].ended, 2);
  EXPECT_DOUBLE_EQ(result.operations[1].started, 2);
  EXPECT_DOUBLE_EQ(result.end, 4);
}

TEST(Simulate, SharesALinkBetweenTransfersUnderWay) {
  StepProgram program;
  program.transfers = {{{{0, 1.0}}, 10}};
  program.operations = {{0, 0, 1, -1, Phase::kDpComm, -1}, {0, 0, 1, -1, Phase::kDpComm, -1}};
  program.cells = {{post(0), wait(0, Phase::kDpComm)},
                   {compute(0.5), post(1), wait(1, Phase::kDpComm)}};
  const Simulation result = simulate(program, {10});
  EXPECT_DOUBLE_EQ(result.operations[0].ended, 1.5);
  EXPECT_DOUBLE_EQ(result.operations[1].ended, 2);
}

}  // namespace
}  // namespace regatta::plan
