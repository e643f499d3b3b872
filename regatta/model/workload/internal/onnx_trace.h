// workload/internal/onnx_trace.h: producers and consumers of the tensors of a graph, and its
// products.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "regatta/model/workload/onnx_model.h"

namespace regatta::workload {

// The largest size that a dimension of a model is taken to have.
constexpr long long kOnnxSizeMax = 10'000'000;

// A matrix product: by a weight of in x out, or of two activations (in and out 0).
struct OnnxProduct {
  int node = 0;
  long long in = 0;
  long long out = 0;
  std::string weight;  // the initializer's name
  bool has_bias = false;

  bool is_of_activations() const { return weight.empty(); }
};

// The nodes that a walk met. A walk ends at a product and does not follow the arithmetic of shapes.
struct OnnxWalk {
  std::set<int> products;  // indices of OnnxTrace::products
  std::vector<int> nodes;  // others, nearest first
  std::vector<std::string> tensors;
};

class OnnxTrace {
 public:
  explicit OnnxTrace(const OnnxGraph& graph);  // which must outlive it

  const OnnxGraph& graph() const { return graph_; }
  const std::vector<OnnxProduct>& products() const { return products_; }  // in the graph's order

  // From a tensor to what it is made of, and to what is made of it.
  OnnxWalk back(const std::string& tensor) const;
  OnnxWalk forward(const std::string& tensor) const;

  // The weight or constant behind copies and transposes, with its dims as they arrive.
  struct Weight {
    std::string name;
    std::vector<long long> dims;
  };
  std::optional<Weight> weight(const std::string& tensor) const;

  // The target of a Reshape, as far as it is fixed: -1 for what is not.
  std::vector<long long> target(const OnnxNode& reshape) const;

 private:
  void find_products();
  bool adds_bias(const OnnxNode& node, long long out) const;
  std::optional<long long> number(const std::string& tensor) const;

  const OnnxGraph& graph_;
  std::unordered_map<std::string, int> makers_;
  std::unordered_map<std::string, std::vector<int>> takers_;
  std::vector<OnnxProduct> products_;
  std::unordered_map<int, int> product_of_node_;
};

}  // namespace regatta::workload
