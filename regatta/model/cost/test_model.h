// cost/test_model.h: the model that the tests of cost share.
#pragma once

#include "regatta/model/workload/model.h"

namespace regatta::cost {

inline workload::ModelShape small_model() {
  workload::ModelShape model;
  model.layers = 8;
  model.hidden = 256;
  model.heads = 8;
  model.ffn_hidden = 1024;
  model.seq = 256;
  model.vocab = 256;
  return model;
}

}  // namespace regatta::cost
