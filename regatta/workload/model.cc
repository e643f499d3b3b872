#include "regatta/workload/model.h"

#include <string>

namespace regatta::workload {

long long layer_parameters(const ModelShape& model) {
  const long long h = model.hidden;
  const long long f = model.ffn_hidden;
  const long long attention = 4 * h * h + 4 * h;  // q, k, v and the output projection
  const long long mlp = 2 * h * f + f + h;
  const long long norms = 4 * h;  // two, each a weight and a bias
  return attention + mlp + norms;
}

long long embedding_parameters(const ModelShape& model) {
  return (static_cast<long long>(model.vocab) + model.seq) * model.hidden;
}

long long head_parameters(const ModelShape& model) {
  const long long h = model.hidden;
  return 2 * h + (model.tied_embeddings ? 0 : h * model.vocab);
}

long long total_parameters(const ModelShape& model) {
  return model.layers * layer_parameters(model) + embedding_parameters(model) +
         head_parameters(model);
}

Flops model_flops(const ModelShape& model, int samples) {
  const double h = model.hidden;
  const double f = model.ffn_hidden;
  const double s = model.seq;
  // Forward of one sample: projections 4 h^2, MLP 2 h f, scores and context 2 s h, each 2 per
  // token.
  const double layer = 2 * s * (4 * h * h + 2 * h * f + 2 * s * h);
  const double head = 2 * s * h * model.vocab;
  return {3 * samples * (model.layers * layer + head)};
}

std::string to_string(Precision precision) {
  return precision == Precision::kFp32 ? "fp32" : "bf16";
}

}  // namespace regatta::workload
