// workload/model.h: the shape of a model and what one layer of it computes and holds.
#pragma once

#include <string>

#include "regatta/core/units.h"

namespace regatta::workload {

enum class ModelKind { kGpt };
enum class Activation { kGelu };

// A GPT decoder: pre-norm blocks, learned position embeddings, biases everywhere but in the
// output layer, which is untied unless `tied_embeddings`. Parameters of one block: 12 h^2 + 13 h
// when ffn_hidden = 4 h.
struct ModelShape {
  ModelKind kind = ModelKind::kGpt;
  std::string preset;  // the preset's name, when one was used
  int layers = 0;
  int hidden = 0;
  int heads = 0;
  int ffn_hidden = 0;
  int seq = 0;  // tokens of one sample
  int vocab = 0;
  Activation activation = Activation::kGelu;
  bool tied_embeddings = false;
};

enum class Precision { kFp32, kBf16 };

inline int bytes_per_element(Precision precision) {
  return precision == Precision::kFp32 ? 4 : 2;
}

long long layer_parameters(const ModelShape& model);      // one block
long long embedding_parameters(const ModelShape& model);  // token + position tables
long long head_parameters(
    const ModelShape& model);  // final norm + output layer (the norm alone if tied)
long long total_parameters(const ModelShape& model);

// Model floating-point operations of one step (forward + backward = 3 x forward, no recomputation)
// for `samples` sequences: matrix products only, 2 m n k each (Narayanan et al., SC'21, appendix).
Flops model_flops(const ModelShape& model, int samples);

std::string to_string(Precision precision);

}  // namespace regatta::workload
