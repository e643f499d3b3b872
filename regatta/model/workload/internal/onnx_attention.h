// workload/internal/onnx_attention.h: the attention of one block in an ONNX graph: a Softmax
// between two products of activations.
#pragma once

#include <optional>
#include <set>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/internal/onnx_trace.h"

namespace regatta::workload {

struct OnnxAttention {
  long long hidden = 0;
  long long heads = 0;
  long long kv_heads = 0;
  long long head_dim = 0;
  long long mask = 0;  // tokens of a causal mask; 0: none, -1: of no fixed size
  bool is_rotary = false;
  bool has_qkv_bias = false;
  bool has_out_bias = false;
  friend bool operator==(const OnnxAttention&, const OnnxAttention&) = default;
};

// With the products that it takes, by their indices in the trace.
struct FoundAttention {
  OnnxAttention attention;
  std::set<int> products;
  int out = 0;  // the last of them, back to rows of `hidden`
};

// The attention around the softmax `node`; nothing when no product of activations follows it, as
// in a loss or a router. An error names the difference from an attention, without an object.
Result<std::optional<FoundAttention>> read_attention(const OnnxTrace& trace, const OnnxNode& node);

}  // namespace regatta::workload
