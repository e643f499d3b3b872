// plan/internal/simulate/step_simulation.h: a deterministic event simulation of programs that
// compute and communicate. A lockstep group is what moves together (the tensor-parallel ranks of
// one stage of one replica); its program is a list of actions. Communication is a list of
// operations, which run beside the lockstep groups and share the network as fluids
// (plan/internal/simulate/fluid_network.h).
#pragma once

#include <vector>

#include "regatta/model/workload/timeline.h"
#include "regatta/planning/plan/internal/simulate/fluid_network.h"

namespace regatta::plan {

// A transfer that begins `latency` after `members` groups have posted it and, in a channel, after
// the operation before it in the same channel has ended.
struct CommOperation {
  int transfer = -1;  // index into StepProgram::transfers; -1: latency alone
  double latency = 0;
  int members = 1;
  int channel = -1;  // operations of one channel run one at a time, in the order of their index
  workload::Phase phase = workload::Phase::kOther;
  int micro_batch = -1;
};

enum class StepActionKind { kCompute, kPost, kWait };

struct StepAction {
  StepActionKind kind = StepActionKind::kCompute;
  workload::Phase phase = workload::Phase::kOther;
  int micro_batch = -1;
  int layer = -1;
  double seconds = 0;  // kCompute
  int operation = -1;  // kPost, kWait
};

struct StepProgram {
  std::vector<std::vector<StepAction>> groups;
  std::vector<CommOperation> operations;
  std::vector<FluidTransfer> transfers;
  int channels = 0;
};

// An interval of one lockstep group. A wait for a pipeline transfer (kPpComm) is cut at the moment
// when its first byte comes: before that it is kBubble.
struct GroupSpan {
  workload::Phase phase = workload::Phase::kOther;
  int micro_batch = -1;
  int layer = -1;
  double start = 0;
  double end = 0;
};

struct CommOperationTimes {
  double posted = 0;   // by its last member
  double started = 0;  // the latency began
  double ended = 0;
};

struct StepSimulation {
  double end = 0;                              // of the last group
  std::vector<std::vector<GroupSpan>> groups;  // without gaps from 0 to the lockstep group's end
  std::vector<CommOperationTimes> operations;
};

// Runs the programs to their end. REGATTA_CHECKs that they end: a program that waits for what
// no rank posts is a bug of the program.
StepSimulation simulate_step(const StepProgram& program, const std::vector<double>& capacities);

}  // namespace regatta::plan
