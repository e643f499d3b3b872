#include "regatta/model/workload/internal/onnx_trace.h"

#include <algorithm>
#include <cstddef>
#include <deque>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/ids.h"

namespace regatta::workload {
namespace {

// Copies of a chain that are followed: files may be wrong, and have rings.
constexpr int kCopiesMax = 16;

// Within what the sizes of a model can be.
bool is_matrix(const std::vector<long long>& dims) {
  return dims.size() == 2 && std::min(dims[0], dims[1]) >= 1 &&
         std::max(dims[0], dims[1]) <= kOnnxSizeMax;
}

bool is_copy(const std::string& op) {
  return op == "Identity" || op == "Cast" || op == "DequantizeLinear";
}

}  // namespace

OnnxTrace::OnnxTrace(const OnnxGraph& graph) : graph_(graph) {
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const std::string& output : graph.nodes[i].outputs)
      makers_[output] = static_cast<int>(i);
    for (const std::string& input : graph.nodes[i].inputs)
      takers_[input].push_back(static_cast<int>(i));
  }
  find_products();
}

std::optional<OnnxTrace::Weight> OnnxTrace::weight(const std::string& tensor) const {
  std::string name = tensor;
  bool is_swapped = false;
  for (int i = 0; i < kCopiesMax; ++i) {
    const auto held = graph_.tensors.find(name);
    if (held != graph_.tensors.end()) {
      Weight found{name, held->second.dims};
      if (is_swapped) std::reverse(found.dims.begin(), found.dims.end());
      return found;
    }
    const auto maker = makers_.find(name);
    if (maker == makers_.end()) return std::nullopt;
    const OnnxNode& node = at(graph_.nodes, maker->second);
    const bool transposes = node.op == "Transpose";
    if (node.inputs.empty() || (!transposes && !is_copy(node.op))) return std::nullopt;
    is_swapped = is_swapped != transposes;
    name = node.inputs.front();
  }
  return std::nullopt;
}

void OnnxTrace::find_products() {
  for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
    const OnnxNode& node = graph_.nodes[i];
    if ((node.op != "MatMul" && node.op != "Gemm") || node.inputs.size() < 2 ||
        node.outputs.empty())
      continue;
    const auto first = weight(node.inputs[0]);
    const auto second = weight(node.inputs[1]);
    OnnxProduct product{.node = static_cast<int>(i)};
    if (!first && second && is_matrix(second->dims)) {
      product.in = second->dims[node.transposes_second ? 1 : 0];
      product.out = second->dims[node.transposes_second ? 0 : 1];
      product.weight = second->name;
      product.has_bias = node.inputs.size() > 2 || adds_bias(node, product.out);
    } else if (first || second) {
      continue;  // tables of positions and the like
    }
    product_of_node_[product.node] = static_cast<int>(products_.size());
    products_.push_back(std::move(product));
  }
}

bool OnnxTrace::adds_bias(const OnnxNode& node, long long out) const {
  const auto takers = takers_.find(node.outputs.front());
  if (takers == takers_.end()) return false;
  for (const int taker : takers->second) {
    const OnnxNode& next = at(graph_.nodes, taker);
    if (next.op != "Add") continue;
    for (const std::string& input : next.inputs) {
      const auto bias = weight(input);
      if (bias && bias->dims.size() == 1 && bias->dims.front() == out) return true;
    }
  }
  return false;
}

OnnxWalk OnnxTrace::back(const std::string& tensor) const {
  OnnxWalk walk;
  std::set<int> seen;
  std::deque<std::string> open{tensor};
  while (!open.empty()) {
    const std::string name = std::move(open.front());
    open.pop_front();
    if (graph_.tensors.contains(name)) {
      walk.tensors.push_back(name);
      continue;
    }
    const auto maker = makers_.find(name);
    if (maker == makers_.end() || !seen.insert(maker->second).second) continue;
    if (const auto product = product_of_node_.find(maker->second);
        product != product_of_node_.end()) {
      walk.products.insert(product->second);
      continue;
    }
    const OnnxNode& node = at(graph_.nodes, maker->second);
    if (node.op == "Shape") continue;
    walk.nodes.push_back(maker->second);
    open.insert(open.end(), node.inputs.begin(), node.inputs.end());
  }
  return walk;
}

OnnxWalk OnnxTrace::forward(const std::string& tensor) const {
  OnnxWalk walk;
  std::set<int> seen;
  std::deque<std::string> open{tensor};
  while (!open.empty()) {
    const auto takers = takers_.find(open.front());
    open.pop_front();
    if (takers == takers_.end()) continue;
    for (const int taker : takers->second) {
      if (!seen.insert(taker).second) continue;
      if (const auto product = product_of_node_.find(taker); product != product_of_node_.end()) {
        walk.products.insert(product->second);
        continue;
      }
      const OnnxNode& node = at(graph_.nodes, taker);
      if (node.op == "Shape") continue;
      walk.nodes.push_back(taker);
      open.insert(open.end(), node.outputs.begin(), node.outputs.end());
    }
  }
  return walk;
}

std::optional<long long> OnnxTrace::number(const std::string& tensor) const {
  std::string name = tensor;
  for (int i = 0; i < kCopiesMax; ++i) {
    const auto held = graph_.tensors.find(name);
    if (held != graph_.tensors.end()) {
      if (held->second.numbers.size() != 1) return std::nullopt;
      return held->second.numbers.front();
    }
    const auto maker = makers_.find(name);
    if (maker == makers_.end()) return std::nullopt;
    const OnnxNode& node = at(graph_.nodes, maker->second);
    if (node.inputs.empty() || (node.op != "Unsqueeze" && !is_copy(node.op))) return std::nullopt;
    name = node.inputs.front();
  }
  return std::nullopt;
}

std::vector<long long> OnnxTrace::target(const OnnxNode& reshape) const {
  if (reshape.inputs.size() < 2) return {};
  const std::string& name = reshape.inputs[1];
  const auto held = graph_.tensors.find(name);
  if (held != graph_.tensors.end()) return held->second.numbers;
  const auto maker = makers_.find(name);
  std::vector<long long> target;
  if (maker == makers_.end() || at(graph_.nodes, maker->second).op != "Concat") return target;
  for (const std::string& part : at(graph_.nodes, maker->second).inputs)
    target.push_back(number(part).value_or(-1));
  return target;
}

}  // namespace regatta::workload
