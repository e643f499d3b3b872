#include "regatta/model/workload/internal/onnx_attention.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"

namespace regatta::workload {
namespace {

struct View {  // what a Reshape makes of a row
  long long heads = 0;
  long long dim = 0;
};

const OnnxNode& node_at(const OnnxTrace& trace, int index) {
  return at(trace.graph().nodes, index);
}
const OnnxProduct& product_at(const OnnxTrace& trace, int index) {
  return at(trace.products(), index);
}

std::optional<int> product_of_activations(const OnnxTrace& trace, const OnnxWalk& walk) {
  std::optional<int> found;
  for (const int index : walk.products)
    if (at(trace.products(), index).is_of_activations()) found = index;
  return found;
}

// The only product by a weight; -1 when there are others.
int only_weight(const OnnxTrace& trace, const OnnxWalk& walk) {
  if (walk.products.size() != 1) return -1;
  const int index = *walk.products.begin();
  return at(trace.products(), index).is_of_activations() ? -1 : index;
}

Error wrong(const std::string& what) {
  return {Code::kInvalidInput, what};
}

// The Reshape that cuts a row of the product into heads: the one nearest to it.
View view(const OnnxTrace& trace, const OnnxWalk& walk, int index) {
  View found;
  for (const int i : walk.nodes) {
    const OnnxNode& reshape = node_at(trace, i);
    if (reshape.op != "Reshape" || reshape.inputs.empty()) continue;
    const std::vector<long long> target = trace.target(reshape);
    const bool cuts =
        target.size() > 3 || (target.size() == 3 && target.back() != product_at(trace, index).out);
    if (!cuts || !trace.back(reshape.inputs.front()).products.contains(index)) continue;
    found = {.heads = target[target.size() - 2], .dim = target.back()};
  }
  return found;
}

Status split(long long query_out, long long key_out, View q, OnnxAttention& attention) {
  if (q.dim < 1 && q.heads > 0) q.dim = query_out / q.heads;
  if (q.dim < 1 || query_out % q.dim != 0 || key_out % q.dim != 0)
    return wrong(fmt::format("rows of {} are cut into no equal heads", query_out));
  attention.head_dim = q.dim;
  attention.heads = query_out / q.dim;
  attention.kv_heads = key_out / q.dim;
  return {};
}

// One product makes queries, keys and values.
Status split_fused(long long out, View q, View k, OnnxAttention& attention) {
  if (std::max({q.heads, q.dim, k.heads}) > kOnnxSizeMax) q = {};
  attention.heads = q.heads;
  attention.kv_heads = q.heads;
  attention.head_dim = q.dim;
  const bool is_known = q.heads > 0 && q.dim > 0;
  if (is_known && q.heads * q.dim == out && q.dim % 3 == 0) {
    attention.head_dim = q.dim / 3;  // cut into heads first, then into three
    return {};
  }
  if (is_known && k.heads > 0 && (q.heads + 2 * k.heads) * q.dim == out) {
    attention.kv_heads = k.heads;
    return {};
  }
  if (is_known && 3 * q.heads * q.dim == out) return {};
  return wrong(fmt::format("rows of {} are cut into no equal heads", out));
}

bool is_comparison(const std::string& op) {
  for (const char* one : {"Trilu", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"})
    if (op == one) return true;
  return false;
}

long long mask_tokens(const OnnxTrace& trace, const OnnxWalk& before) {
  for (const std::string& name : before.tensors) {
    const std::vector<long long>& dims = trace.graph().tensors.at(name).dims;
    if (dims.size() >= 2 && dims.back() > 1 && dims.back() == dims[dims.size() - 2])
      return dims.back();
  }
  const bool compares = std::any_of(before.nodes.begin(), before.nodes.end(),
                                    [&](int i) { return is_comparison(node_at(trace, i).op); });
  return compares ? -1 : 0;
}

bool turns(const OnnxTrace& trace, const OnnxWalk& queries) {
  return std::any_of(queries.nodes.begin(), queries.nodes.end(), [&](int i) {
    return node_at(trace, i).op == "Neg" || node_at(trace, i).op == "Cos" ||
           node_at(trace, i).op == "RotaryEmbedding";
  });
}

// The walks from the three operands, and the products that they lead to; -1 where that is not one.
struct Operands {
  OnnxWalk queries, keys;
  int query = -1;
  int key = -1;
  int value = -1;
  int out = -1;
};

Operands find_operands(const OnnxTrace& trace, const OnnxNode& scores, const OnnxNode& context) {
  Operands found{.queries = trace.back(scores.inputs[0]), .keys = trace.back(scores.inputs[1])};
  found.query = only_weight(trace, found.queries);
  found.key = only_weight(trace, found.keys);
  found.value = only_weight(trace, trace.back(context.inputs[1]));
  found.out = only_weight(trace, trace.forward(context.outputs.front()));
  return found;
}

Status check_widths(const OnnxTrace& trace, const Operands& operands, const OnnxAttention& sizes) {
  const OnnxProduct& out = product_at(trace, operands.out);
  const OnnxProduct& key = product_at(trace, operands.key);
  if (out.in == sizes.heads * sizes.head_dim && out.out == sizes.hidden && key.in == sizes.hidden &&
      product_at(trace, operands.value).out == key.out)
    return {};
  return wrong(fmt::format("{} heads of {} do not make its output of {} x {} from rows of {}",
                           sizes.heads, sizes.head_dim, out.in, out.out, sizes.hidden));
}

}  // namespace

Result<std::optional<FoundAttention>> read_attention(const OnnxTrace& trace, const OnnxNode& node) {
  const auto context = product_of_activations(trace, trace.forward(node.outputs.front()));
  if (!context) return std::optional<FoundAttention>();
  const OnnxWalk before = trace.back(node.inputs.front());
  const std::optional<int> scores = product_of_activations(trace, before);
  if (!scores) return wrong("its scores are no product of queries and keys");
  const Operands operands = find_operands(trace, node_at(trace, product_at(trace, *scores).node),
                                          node_at(trace, product_at(trace, *context).node));
  if (std::min({operands.query, operands.key, operands.value, operands.out}) < 0)
    return wrong("queries, keys, values and output are not one product by a weight each");
  const OnnxProduct& query = product_at(trace, operands.query);
  OnnxAttention attention{.hidden = query.in,
                          .mask = mask_tokens(trace, before),
                          .is_rotary = turns(trace, operands.queries),
                          .has_qkv_bias = query.has_bias,
                          .has_out_bias = product_at(trace, operands.out).has_bias};
  const bool is_fused = operands.query == operands.key && operands.key == operands.value;
  const View q = view(trace, operands.queries, operands.query);
  REGATTA_TRY_DO(
      is_fused ? split_fused(query.out, q, view(trace, operands.keys, operands.key), attention)
               : split(query.out, product_at(trace, operands.key).out, q, attention));
  REGATTA_TRY_DO(check_widths(trace, operands, attention));
  return std::optional(
      FoundAttention{.attention = attention,
                     .products = {operands.query, operands.key, operands.value, operands.out},
                     .out = operands.out});
}

}  // namespace regatta::workload
