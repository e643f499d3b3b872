// train/internal/parameters.h: the weights of one rank, with gradients and Adam's moments, in flat
// arrays. Every full parameter is drawn from a generator seeded by (seed, its name) and then cut,
// so that every parallel form starts from the same weights.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "regatta/model/workload/model.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/runtime/train/internal/tensor.h"

namespace regatta::train {

// How a tensor-parallel group cuts a parameter.
enum class TensorParallelCut { kWhole, kRows, kColumns };
enum class Init { kZero, kOne, kNormal };

struct ParameterSpec {
  std::string name;          // of the full model: "block3.qkv.weight"
  std::int64_t rows = 0;     // of the full parameter
  std::int64_t columns = 0;  // 0: a vector of `rows`
  TensorParallelCut cut = TensorParallelCut::kWhole;
  Init init = Init::kZero;
  double deviation = 0;      // of kNormal
  bool second_copy = false;  // the tied table on the last stage: the first stage counts it
};

struct Parameter {
  ParameterSpec spec;
  std::int64_t offset = 0;  // into the flat arrays
  std::int64_t count = 0;   // elements of this rank's part
  Tensor value;             // view, compute precision
  Tensor gradient;          // view, fp32
};

struct Parameters {
  std::vector<Parameter> list;  // in the order in which backward finishes their gradients
  Tensor master;                // fp32, flat
  Tensor gradient;              // fp32, flat; zero between steps
  Tensor first_moment;          // fp32, flat
  Tensor second_moment;
  Tensor compute;  // flat in compute precision; the same memory as master when fp32

  // REGATTA_CHECKs that the name is there.
  const Parameter& operator[](const std::string& name) const;
};

// The parameters of the pipeline stage at `at`, last block first. Layout of one block with hidden
// h, ffn f: qkv.weight [3h, h] (rows: head, then q/k/v, then head_dim), proj.weight [h, h],
// up.weight [f, h], down.weight [h, f], each with a bias, and two norms.
std::vector<ParameterSpec> stage_parameters(const workload::ModelShape& model,
                                            const workload::Strategy& strategy,
                                            workload::RankCoordinates at);

struct ParameterOptions {
  int tp_size = 1;
  int tp_rank = 0;
  workload::Precision precision = workload::Precision::kFp32;
  std::uint64_t seed = 1;
};
Parameters make_parameters(const std::vector<ParameterSpec>& specs,
                           const ParameterOptions& options);

// After master changed: brings `compute` up to date. Nothing to do in fp32.
void refresh_compute(Parameters& parameters);

}  // namespace regatta::train
