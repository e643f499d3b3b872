#include "regatta/runtime/train/internal/parameters.h"

#include <cmath>
#include <cstddef>

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <fmt/core.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/stats.h"

namespace regatta::train {
namespace {

constexpr double kDeviation = 0.02;  // of weights, as GPT-2 starts them

Tensor full_parameter(const ParameterSpec& spec, std::uint64_t seed) {
  const std::int64_t columns = spec.columns == 0 ? 1 : spec.columns;
  Tensor full = at::zeros({spec.rows, columns}, at::kFloat);
  if (spec.init == Init::kOne) full.fill_(1);
  if (spec.init == Init::kNormal) {
    auto generator = at::make_generator<at::CPUGeneratorImpl>(
        fnv1a(spec.name, kFnv1aBasis ^ (seed * kSplitMixStep)));
    full.normal_(0, spec.deviation, generator);
  }
  return full;
}

// This rank's part of a parameter, [rows, columns].
Tensor cut_of(const Tensor& full, TensorParallelCut cut, const ParameterOptions& options) {
  if (cut == TensorParallelCut::kWhole) return full;
  const int dimension = cut == TensorParallelCut::kRows ? 0 : 1;
  const std::int64_t size = full.size(dimension) / options.tp_size;
  return full.narrow(dimension, options.tp_rank * size, size);
}

struct LocalShape {
  std::vector<std::int64_t> sizes;
  std::int64_t count = 1;
};

LocalShape local_shape(const ParameterSpec& spec, int tp_size) {
  const std::int64_t rows = spec.cut == TensorParallelCut::kRows ? spec.rows / tp_size : spec.rows;
  if (spec.columns == 0) return {{rows}, rows};
  const std::int64_t columns =
      spec.cut == TensorParallelCut::kColumns ? spec.columns / tp_size : spec.columns;
  return {{rows, columns}, rows * columns};
}

void add_block(std::vector<ParameterSpec>& specs, const workload::ModelShape& model, int layer) {
  const auto name = [layer](const char* part) { return fmt::format("block{}.{}", layer, part); };
  const std::int64_t h = model.hidden;
  const std::int64_t f = model.ffn_hidden;
  // Outputs that are added to the residual stream start smaller, so that its size does not grow
  // with depth (GPT-2).
  const double residual = kDeviation / std::sqrt(2.0 * model.layers);
  const auto normal = Init::kNormal;
  specs.push_back({name("down.weight"), h, f, TensorParallelCut::kColumns, normal, residual});
  specs.push_back({name("down.bias"), h});
  specs.push_back({name("up.weight"), f, h, TensorParallelCut::kRows, normal, kDeviation});
  specs.push_back({name("up.bias"), f, 0, TensorParallelCut::kRows});
  specs.push_back({name("norm2.weight"), h, 0, TensorParallelCut::kWhole, Init::kOne});
  specs.push_back({name("norm2.bias"), h});
  specs.push_back({name("proj.weight"), h, h, TensorParallelCut::kColumns, normal, residual});
  specs.push_back({name("proj.bias"), h});
  specs.push_back({name("qkv.weight"), 3 * h, h, TensorParallelCut::kRows, normal, kDeviation});
  specs.push_back({name("qkv.bias"), 3 * h, 0, TensorParallelCut::kRows});
  specs.push_back({name("norm1.weight"), h, 0, TensorParallelCut::kWhole, Init::kOne});
  specs.push_back({name("norm1.bias"), h});
}

}  // namespace

const Parameter& Parameters::operator[](const std::string& name) const {
  for (const Parameter& parameter : list) {
    if (parameter.spec.name == name) return parameter;
  }
  check_failed(name.c_str(), __FILE__, __LINE__);
}

std::vector<ParameterSpec> stage_parameters(const workload::ModelShape& model,
                                            const workload::Strategy& strategy,
                                            workload::RankCoordinates at) {
  const std::int64_t h = model.hidden;
  const bool first = at.pp == 0;
  const bool last = at.pp == strategy.pp - 1;
  ParameterSpec table{"token.weight",           model.vocab,   h,
                      TensorParallelCut::kRows, Init::kNormal, kDeviation};
  std::vector<ParameterSpec> specs;
  if (last) {
    if (!model.tied_embeddings) {
      specs.push_back(
          {"output.weight", model.vocab, h, TensorParallelCut::kRows, Init::kNormal, kDeviation});
    } else if (!first) {
      table.second_copy = true;
      specs.push_back(table);
    }
    specs.push_back({"norm.weight", h, 0, TensorParallelCut::kWhole, Init::kOne});
    specs.push_back({"norm.bias", h});
  }
  const workload::LayerRange range = workload::stage_layers(model, strategy, at.pp);
  for (int layer = range.first + range.count - 1; layer >= range.first; --layer)
    add_block(specs, model, layer);
  if (first) {
    table.second_copy = false;
    specs.push_back(
        {"position.weight", model.seq, h, TensorParallelCut::kWhole, Init::kNormal, kDeviation});
    specs.push_back(table);
  }
  return specs;
}

Parameters make_parameters(const std::vector<ParameterSpec>& specs,
                           const ParameterOptions& options) {
  std::int64_t total = 0;
  for (const ParameterSpec& spec : specs)
    total += local_shape(spec, options.tp_size).count;
  Parameters made;
  made.master = at::zeros({total}, at::kFloat);
  made.gradient = at::zeros({total}, at::kFloat);
  made.first_moment = at::zeros({total}, at::kFloat);
  made.second_moment = at::zeros({total}, at::kFloat);
  made.compute = options.precision == workload::Precision::kFp32
                     ? made.master
                     : at::zeros({total}, scalar_type(options.precision));
  made.list.reserve(specs.size());
  std::int64_t offset = 0;
  for (const ParameterSpec& spec : specs) {
    const LocalShape shape = local_shape(spec, options.tp_size);
    const Tensor part = cut_of(full_parameter(spec, options.seed), spec.cut, options);
    made.master.narrow(0, offset, shape.count).view(part.sizes()).copy_(part);
    made.list.push_back(
        {.spec = spec,
         .offset = offset,
         .count = shape.count,
         .value = made.compute.narrow(0, offset, shape.count).view(shape.sizes),
         .gradient = made.gradient.narrow(0, offset, shape.count).view(shape.sizes)});
    offset += shape.count;
  }
  refresh_compute(made);
  return made;
}

void refresh_compute(Parameters& parameters) {
  if (parameters.compute.scalar_type() == at::kFloat) return;
  parameters.compute.copy_(parameters.master);
}

}  // namespace regatta::train
