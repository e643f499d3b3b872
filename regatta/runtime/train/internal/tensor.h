// train/internal/tensor.h: the tensors of libtorch alone: files include the operators that they use
// one by one (the header of all operators costs 11 s per file).
#pragma once

#ifndef AT_PER_OPERATOR_HEADERS
#define AT_PER_OPERATOR_HEADERS
#endif

// First: clang 14 in C++20 needs the whole type before other headers use it in vectors.
#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include "regatta/model/workload/model.h"
#include "regatta/runtime/comm/communicator.h"

namespace regatta::train {

using at::Tensor;

inline at::ScalarType scalar_type(workload::Precision precision) {
  return precision == workload::Precision::kFp32 ? at::kFloat : at::kBFloat16;
}

// The communicator's name of a tensor's element type; REGATTA_CHECKs that it is one of
// fp32, fp64, bf16, i64.
comm::DataType data_type(const Tensor& tensor);

}  // namespace regatta::train
