// cost/software_stack.h: what a software stack reaches on a device: how it runs a block, and at
// most eight scalars that were fitted to published measurements. The table of all stacks is in
// stack.cc.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

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
  bool latest_attention = true;  // kernels written for the device, not for the one before it
  double attention_share = 1;    // of the rate of those kernels
  bool fuses_passes = true;      // bias, mask, dropout and sums with what is before or after them
  double logit_bytes = 20;       // read and written for each logit between its product and the loss
  bool has_dropout = true;       // keeps masks
  bool slices_boundaries =
      false;                  // a tensor rank sends its share of a stage boundary, not all of it
  bool sends_mask = false;    // that of attention, with the activations of a stage boundary
  double boundary_share = 1;  // of the NICs' rate, that messages between stages reach
  double gradient_bytes = 2;  // per parameter in the data-parallel reduction, of fp16
  bool scatters_gradients = false;  // ZeRO-1 sends each replica its share of the sums, not all
  double tied_bytes = 0;            // the same of a token table that the first and last stage share
  double accumulated_bytes = 6;  // read and written per parameter to add a micro-batch's gradient
  int kernels_forward = 0;       // kernels of one block; an MLP of experts has more
  int kernels_backward = 0;
  Seconds kernel_gap;  // the device idles between two of them
  // Communication that computation hides: shares of it at most, where there is as much to compute.
  // Net of what the computation loses by it: kernels that share processors and memory with a
  // collective are slower, and the fit sees both at once.
  double tp_overlap = 0;
  double pp_overlap = 0;
  double dp_overlap = 0;
  double ep_overlap = 0;
  // Dropless experts: the device waits until the host knows how many tokens each expert gets, and
  // launches their products after that. A time for each block with experts in each forward.
  Seconds experts_sync;
  // A token goes once to each rank that has experts for it, not once an expert.
  bool dispatches_once_a_rank = false;
  // Tokens go to their experts in the precision of the products, where that has eight bits or less.
  bool dispatches_narrow = false;
  // Tokens are sorted by rank before the exchange and by expert after it: between two copies.
  bool sorts_twice = false;
  // The exchange itself sorts tokens by expert at one of its ends.
  bool sorts_while_sending = false;
  // One kernel for both products of experts, with their biases and activation function.
  bool fuses_experts = false;
  // In fp8 each tensor is read for its largest element before it is cast, not scaled by that of
  // steps before.
  bool scales_by_tensor = false;
  // The router's weights are applied within the experts' MLP, so that its output need not be kept;
  // operands of products in 8 bits are kept in 8 bits.
  bool weighs_before_output = false;
  // Replicas that share weights gather them over each device's own NIC, not around the server
  // first.
  bool gathers_flat = false;
  // In device memory per parameter, in 16-bit training: gradients, and the optimizer's master
  // weights and moments.
  double held_gradient_bytes = 4;
  double state_bytes = 12;
  bool keeps_outputs = false;  // of every stage, of all micro-batches in flight
  // The driver's and the libraries' work space, and the buffers of some four communicators.
  Bytes context{2'500'000'000};
};

// The share of a device's data sheet that kernels reach, relative to the A100 that stacks were
// fitted on.
struct DeviceEfficiency {
  double matrix = 1;               // of Calibration::matrix_efficiency, in 16 bits and more
  double matrix_fp8 = 1;           // of the same, in fp8 and mxfp8
  double attention = 0.5;          // share of the 16-bit peak that fused attention reaches
  double older_attention = 0.5;    // the same with kernels written for the device before it
  BytesPerSecond host_link{25e9};  // to the server's memory, one way
  double server_watts = 0;         // of the whole server under load, per device; 0: not known
  double matrix_nvfp4 = 1;         // as matrix_fp8, in nvfp4
  // Elements of a head whose products take fused attention as long as the softmax of a score does.
  double softmax_width = 20;
  // The tokens that beginning and ending a row of scores are worth to it, in those of an A100.
  double row_start = 1;
};
DeviceEfficiency device_efficiency(std::string_view device);

// Measured over predicted step times: a tenth lie below, a tenth above.
struct PredictionErrorRange {
  double low = 0;
  double high = 0;

  friend bool operator==(const PredictionErrorRange&, const PredictionErrorRange&) = default;
};

// The user's own runs of dense models, or of those with experts, that a stack was calibrated on.
struct OwnRuns {
  int count = 0;
  PredictionErrorRange range;  // of predictions that did not see the run

  friend bool operator==(const OwnRuns&, const OwnRuns&) = default;
};

struct SoftwareStack {
  std::string name;  // "megatron-deepspeed-fp16"
  StackTraits traits;
  Calibration calibration;
  std::string fitted_on;  // which published rows, or whose scalars it takes
  std::string assumes;    // how it runs a step, for people: "fused attention, ..."
  // A tenth of the ratios of measured to predicted step times (replay/) lie below, a tenth above.
  double low = 0.9;
  double high = 1.1;
  OwnRuns own_dense = {};  // none unless the stack is a calibrated one
  OwnRuns own_experts = {};
};

// That of the user's own runs of such a model; without any that of the stack's replayed rows, and
// for models with experts one of any stack: 16 of the 20 rows of them lie in it that the replay
// holds out of Megatron Bridge, and the 11 of its own set.
PredictionErrorRange prediction_error_range(const SoftwareStack& stack,
                                            const workload::ModelShape& model);

// The kind of a run as published rows are compared with predictions: dense models and those with
// experts, on a device, in a precision.
struct RunKind {
  std::string_view device;
  workload::Precision precision = workload::Precision::kBf16;
  bool has_experts = false;

  friend bool operator==(const RunKind&, const RunKind&) = default;
};
// Whether a published run of the kind was compared with a prediction (replay/).
bool was_compared(const RunKind& kind);
// The range of a kind that never was: twice as far from 1.
PredictionErrorRange widened(const PredictionErrorRange& range);

// nullptr when there is none of that name.
const SoftwareStack* find_software_stack(std::string_view name);
std::vector<std::string> software_stack_names();

// The stack that people use for such a job where none is named, by model, precision and the year
// of the device: with experts Megatron Bridge, in MXFP8 on NVL72 with graphs, or AutoModel where
// replicas share the weights; Megatron Bridge for fp8 and less, Megatron-LM of 2022, before fused
// attention, where a plain GPT trains in fp16 on a device of that time (none of fp8), else
// Megatron-Core. The strategy counts only with zero 3: replicas that share the weights are FSDP.
const SoftwareStack& default_software_stack(const workload::ModelShape& model,
                                            workload::Precision precision,
                                            const workload::StrategyRequest& request,
                                            const topo::DeviceType& device);

// The scalars of a stack that runs can decide: those of its calibration, and of its traits the
// wait for experts and the shares of communication that computation hides.
enum class StackScalar {
  kMatrixEfficiency,
  kTileDepth,
  kMemoryEfficiency,
  kLaunch,
  kLinkEfficiency,
  kNetworkEfficiency,
  kCollectiveLatency,
  kMisalignment,
  kExpertsSync,
  kTpOverlap,
  kPpOverlap,
  kDpOverlap,
  kEpOverlap,
};
inline constexpr std::size_t kStackScalarCount = 13;
std::array<StackScalar, kStackScalarCount> all_stack_scalars();
std::string to_string(StackScalar scalar);        // its key, with the unit: "launch_s"
std::string_view meaning_of(StackScalar scalar);  // "host time of one kernel of a block"
double scalar_of(const SoftwareStack& stack, StackScalar scalar);
void set_scalar(SoftwareStack& stack, StackScalar scalar, double value);

// The scalars of a stack as a user's own runs decide them: the file CLUSTER.calibrated.json.
struct StackCalibration {
  std::string stack;                               // its name
  std::string device;                              // that the runs were on: "h100-sxm"
  std::string source;                              // "6 runs of runs.csv"
  std::vector<StackScalar> fitted;                 // the others are those of the stack as it was
  std::array<double, kStackScalarCount> values{};  // by StackScalar
  double error_before = 0;    // mean of |predicted / measured - 1| with the stack as it was,
  double error_after = 0;     // as it was fitted,
  double error_left_out = 0;  // and of runs that the fit did not see
  OwnRuns dense;
  OwnRuns experts;

  int runs() const { return dense.count + experts.count; }
};
StackCalibration calibration_of(const SoftwareStack& stack);
SoftwareStack calibrated(SoftwareStack stack, const StackCalibration& calibration);

// Indented text that parse_stack_calibration() gives back bit for bit.
std::string stack_calibration_to_json(const StackCalibration& calibration);

// Fails with kInvalidInput when `text` is not such a document: the message starts with `name` (the
// file, for people), names the path of the key that is wrong, and says to run
// `regatta plan calibrate` again. Unknown keys are ignored.
Result<StackCalibration> parse_stack_calibration(std::string_view text, const std::string& name);

}  // namespace regatta::cost
