// replay/internal/published_run.h: training runs that others measured and published, as inputs of
// the planner. A file of rows is known by its name; each says how fast a step was or how much
// memory it took:
//   vtrain_single_a100           Bang et al., MICRO 2024 (vTrain): 2 to 8 A100 of one server, fp16
//   vtrain_multi_a100_part       the same: 64 to 512 A100, 4 NICs of 200 Gb/s a server
//   bloom_176b_part              BigScience, 2022: A100, bf16, ZeRO-1, 4 NICs of 100 Gb/s a server
//   korthikanti_table5, _memory  Korthikanti et al., 2022, table 5, figures 1 and 7: DGX A100, fp16
//   megatron_sc21_table1         Narayanan et al., SC'21, table 1: DGX A100, fp16
//   megatron_sc21_table2_zero3   the same, table 2: beside ZeRO-3
//   mosaic_fsdp                  MosaicML, 2023: FSDP on A100 and H100, bf16 and fp8
//   amp_real_trials              Li et al., NeurIPS 2022 (AMP): 16 T4, and 12 V100 with 4 T4, fp16
//   nemo_2407_h100_fp8(_finetune), nemo_context_parallel   NVIDIA NeMo, 2024 and 2025: fp8
//   megatron_bridge_part         NVIDIA Megatron-Bridge, 2025 and 2026: H100 to GB300, fp8 and less
//   at_scale, experts            several sources, named in shipped.cc: thousands of devices, other
//                                generations, mixtures of experts
// A file of any other name is read in the form of the last two: every row says all of its run, in
// the columns model (a preset), heads, seq, vocab (where they differ from it), server (a preset),
// gpus, tp, pp, cp, ep, etp, zero, vp, schedule, sp ("no"), recompute, mbs, gbs, precision, stack,
// and one of step_s, tokens_s_gpu and tflops_gpu.
//
// Calibration rows are all of the first set, every second timed row, from the first, of the next
// two, and some models of megatron_bridge_part (published_run_rows_bridge.cc); all others are held
// out. Only the fastest of several releases of one configuration counts. Where a source is silent:
// the vocabulary of vTrain is 51200; heads of BLOOM are 64, or 96 where the hidden size is 12288
// or 14400; Megatron interleaves 2 parts of a stage and takes the micro-batch that is predicted
// fastest; NeMo shares the optimizer's state and tokens among tensor ranks; the first three of
// AMP's mixed servers have V100 (its third experiment is left out: the shape of that model is not
// published with it). Rows that a set flags as not to be used, and rows without a figure, are left
// out.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/model/topo/cluster.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::replay {

// The quantity that was measured, in seconds or bytes; memory is that of the device that holds
// most.
enum class MeasuredQuantity {
  kStep,
  kMemory,       // all that the driver shows
  kState,        // weights, gradients and optimizer of a rank in the middle
  kActivations,  // of the first stage
  kFailure,      // nothing: out of memory or out of time; in place of a figure, the device's memory
};

std::string to_string(
    MeasuredQuantity quantity);  // "step", "memory", "state", "activations", "failure"

struct PublishedRun {
  std::string name;   // for people: "39.1B tp8 pp4 dp16 mb3 recompute=full"
  std::string group;  // rows of one model on one cluster have the same
  workload::ModelShape model;
  workload::Strategy strategy;  // micro_batch 0: the source does not say
  // The source does not say what of blocks with experts is recomputed: the least that fits.
  bool is_recompute_open = false;
  int global_batch = 0;
  workload::Precision precision = workload::Precision::kBf16;
  topo::ServerType server;  // all of them, or of `cluster` the one with the least memory
  std::optional<topo::Cluster> cluster;  // of several types of servers, or with uneven stages
  std::vector<int> layers;               // of each stage; only with `cluster`
  std::string stack;                     // of cost/software_stack.h
  MeasuredQuantity quantity = MeasuredQuantity::kStep;
  double measured = 0;
  bool is_calibration = false;
};

std::vector<std::string> set_names();

struct PublishedTable {
  std::vector<PublishedRun> runs;
  std::map<std::string, int> left_out;  // rows that are no runs of the planner, by the reason
};

// The rows of the set `name` from the text of its file. Fails with kInvalidInput for a name that is
// not known, a file that is no such table, and a row whose numbers are missing, naming it.
Result<PublishedTable> read_published_table(const std::string& name, std::string_view text);
// Stands in for what rows of a user's own table leave out.
struct RunDefaults {
  const topo::ServerType* server = nullptr;
  std::string stack;
};
// The same for a user's own table of any name, whose rows say all but what the defaults do.
Result<std::vector<PublishedRun>> read_own_runs(const std::string& name, std::string_view text,
                                                const RunDefaults& defaults);
// Its runs alone.
Result<std::vector<PublishedRun>> read_published(const std::string& name, std::string_view text);

}  // namespace regatta::replay
