// cost/stack.h: what a software stack reaches on a device: how it runs a block, and at most eight
// scalars that were fitted to published measurements. The table of all stacks is in stack.cc.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "regatta/core/units.h"

namespace regatta::cost {

// Each is a share or a time that a benchmark of the device could measure by itself.
struct Calibration {
  double matrix_efficiency = 1;  // share of the matrix peak: full waves of deep products
  double tile_depth = 0;         // elements of k that beginning and ending a tile are worth
  double misalignment = 0;       // of products: time added per halving of alignment below 128 bytes
  double memory_efficiency = 1;  // share of the memory bandwidth: passes over large tensors
  Seconds launch;                // host time of one kernel of a block
  double link_efficiency = 1;    // share of the bandwidth between devices: collectives
  double network_efficiency = 1;  // share of the rate of NICs
  Seconds collective_latency;     // of one collective inside a server, between servers per doubling
};

// How a stack runs a training step.
struct StackTraits {
  bool flash_attention = false;  // scores never reach memory
  bool slices_boundaries =
      false;                     // a tensor rank sends its share of a stage boundary, not all of it
  double gradient_bytes = 2;     // per parameter in the data-parallel reduction
  double accumulated_bytes = 6;  // read and written per parameter to add a micro-batch's gradient
  int kernels_forward = 0;       // kernels of one block
  int kernels_backward = 0;
};

struct Stack {
  std::string name;    // "megatron-deepspeed-fp16"
  std::string device;  // of topo/presets.h
  StackTraits traits;
  Calibration calibration;
  std::string fitted_on;  // which published rows, or whose scalars it takes
};

// nullptr when there is none of that name.
const Stack* find_stack(std::string_view name);
std::vector<std::string> stack_names();

}  // namespace regatta::cost
