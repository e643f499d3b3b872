#include "regatta/model/workload/onnx_model.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/model/workload/internal/onnx_attention.h"
#include "regatta/model/workload/internal/onnx_trace.h"

namespace regatta::workload {
namespace {

struct Mlp {
  long long ffn_hidden = 0;
  bool is_gated = false;
  bool has_bias = false;
  friend bool operator==(const Mlp&, const Mlp&) = default;
};

class Recovery {
 public:
  Recovery(const OnnxGraph& graph, const std::string& file) : trace_(graph), file_(file) {}

  Result<ModelShape> run() {
    REGATTA_TRY_DO(find_attentions());
    find_tables();
    REGATTA_TRY_DO(find_mlps());
    return shape();
  }

 private:
  Error refuse(const std::string& found) const {
    return {Code::kInvalidInput,
            fmt::format("{}: no stack of equal transformer blocks: {}; write the sizes out", file_,
                        found)};
  }
  const OnnxNode& node(int index) const { return at(trace_.graph().nodes, index); }
  const OnnxProduct& product(int index) const { return trace_.products()[as_index(index)]; }

  Status find_attentions() {
    for (const OnnxNode& softmax : trace_.graph().nodes) {
      if (softmax.op != "Softmax" || softmax.inputs.empty() || softmax.outputs.empty()) continue;
      const Result<std::optional<FoundAttention>> found = read_attention(trace_, softmax);
      if (!found) {
        return refuse(
            fmt::format("attention {}: {}", attentions_.size() + 1, found.error().message));
      }
      if (!*found) continue;
      used_.insert((*found)->products.begin(), (*found)->products.end());
      outs_.push_back((*found)->out);
      attentions_.push_back((*found)->attention);
    }
    if (!attentions_.empty()) return check_equal(attentions_, "attention");
    return refuse(
        fmt::format("{} products by weights and no Softmax between two products of "
                    "activations were found",
                    trace_.products().size()));
  }

  template <typename Part>
  Status check_equal(const std::vector<Part>& parts, const char* name) const {
    for (std::size_t i = 1; i < parts.size(); ++i) {
      if (parts[i] == parts.front()) continue;
      return refuse(fmt::format("{} {} of {} differs from the first", name, i + 1, parts.size()));
    }
    return {};
  }

  // Finds the remaining products by weights: those of each block's MLP, then those after the last.
  Status find_mlps() {
    std::vector<int> rest;
    for (int i = 0; i < static_cast<int>(trace_.products().size()); ++i)
      if (!product(i).is_of_activations() && !used_.contains(i)) rest.push_back(i);
    drop_head(rest);
    const std::size_t blocks = attentions_.size();
    std::size_t each = rest.size();
    if (blocks > 1) {
      each = static_cast<std::size_t>(std::count_if(
          rest.begin(), rest.end(), [&](int i) { return i > outs_[0] && i < outs_[1]; }));
    }
    if (each < 2 || each > 3 || rest.size() < each * blocks) {
      return refuse(
          fmt::format("{} blocks and {} products by weights beside attention were found, "
                      "where an MLP has 2 and a gated one 3",
                      blocks, rest.size()));
    }
    for (std::size_t block = 0; block < blocks; ++block) {
      const auto first = rest.begin() + static_cast<std::ptrdiff_t>(block * each);
      REGATTA_TRY_DO(read_mlp({first, first + static_cast<std::ptrdiff_t>(each)}));
    }
    return check_equal(mlps_, "MLP");
  }

  // The output layer behind all blocks, which is no part of an MLP: those give rows of `hidden`.
  void drop_head(std::vector<int>& rest) {
    if (rest.empty() || rest.back() < outs_.back()) return;
    const OnnxProduct& last = product(rest.back());
    if (last.in != hidden() || last.out == hidden()) return;
    if (vocab_ == 0) vocab_ = last.out;
    if (last.out == vocab_) head_ = last.weight;
    rest.pop_back();
  }

  long long hidden() const { return attentions_.front().hidden; }

  Status read_mlp(const std::vector<int>& indices) {
    const OnnxProduct& up = product(indices.front());
    const OnnxProduct& down = product(indices.back());
    Mlp mlp{.ffn_hidden = down.in, .has_bias = up.has_bias && down.has_bias};
    bool fits = up.in == hidden() && down.out == hidden();
    if (indices.size() == 3) {
      const OnnxProduct& gate = product(indices[1]);
      mlp.is_gated = true;
      fits = fits && up.out == down.in && gate.in == hidden() && gate.out == down.in;
    } else {
      mlp.is_gated = up.out == 2 * down.in;  // gate and other half by one product
      fits = fits && (mlp.is_gated || up.out == down.in);
    }
    if (!fits) {
      return refuse(
          fmt::format("the products behind attention {} are {} x {} to {} x {}, which is "
                      "no MLP on rows of {}",
                      mlps_.size() + 1, up.in, up.out, down.in, down.out, hidden()));
    }
    mlps_.push_back(mlp);
    return {};
  }

  // The inputs of the model index the largest table, that of words; the next is that of
  // positions, which exporters may have folded.
  void find_tables() {
    constexpr long long kSegmentsMax = 4;  // a table of few rows holds the segments of a text
    std::map<std::string, long long> tables;
    for (const OnnxNode& node : trace_.graph().nodes) {
      if (node.inputs.size() < 2 || (node.op != "Gather" && node.op != "Add")) continue;
      for (std::size_t i = 0; i < (node.op == "Add" ? 2U : 1U); ++i) {
        const auto table = trace_.weight(node.inputs[i]);
        if (!table || table->dims.size() < 2 || table->dims.back() != hidden()) continue;
        const long long rows = table->dims[table->dims.size() - 2];
        tables[table->name] = rows;
        if (node.op != "Gather" || rows <= vocab_ || !is_given(node.inputs[1])) continue;
        vocab_ = rows;
        words_ = table->name;
      }
    }
    for (const auto& [name, rows] : tables)
      if (name != words_ && rows > kSegmentsMax) positions_ = std::max(positions_, rows);
  }

  bool is_given(const std::string& tensor) const {
    const OnnxWalk walk = trace_.back(tensor);
    const auto& inputs = trace_.graph().inputs;
    if (!walk.tensors.empty() || !walk.products.empty()) return false;
    const auto is_input = [&](const std::string& name) {
      return std::any_of(inputs.begin(), inputs.end(),
                         [&](const OnnxInput& input) { return input.name == name; });
    };
    if (is_input(tensor)) return true;
    return std::any_of(walk.nodes.begin(), walk.nodes.end(), [&](int i) {
      return std::any_of(node(i).inputs.begin(), node(i).inputs.end(), is_input);
    });
  }

  long long sample_tokens() const {
    if (positions_ > 0) return positions_;
    for (const OnnxInput& input : trace_.graph().inputs)
      if (input.dims.size() >= 2 && input.dims[1] > 1) return input.dims[1];
    return std::max(attentions_.front().mask, 0LL);
  }

  std::optional<NormKind> norm() const {
    std::set<std::string> means;
    for (const OnnxNode& node : trace_.graph().nodes) {
      if (node.op == "LayerNormalization") return NormKind::kLayerNorm;
      if (node.op == "RMSNormalization" || node.op == "SimplifiedLayerNormalization")
        return NormKind::kRmsNorm;
      if (node.op == "ReduceMean") means.insert(node.outputs.begin(), node.outputs.end());
      const bool shifts = node.op == "Sub" && node.inputs.size() == 2;
      if (shifts && means.contains(node.inputs[1])) return NormKind::kLayerNorm;
    }
    return means.empty() ? std::nullopt : std::optional(NormKind::kRmsNorm);
  }

  Result<ModelShape> shape() const {
    const OnnxAttention& attention = attentions_.front();
    const Mlp& mlp = mlps_.front();
    const std::optional<NormKind> found_norm = norm();
    if (!found_norm) return refuse("no norm was found");
    const auto blocks = static_cast<long long>(attentions_.size());
    for (const long long size : {blocks, attention.hidden, attention.heads, attention.kv_heads,
                                 attention.head_dim, mlp.ffn_hidden})
      if (size < 1 || size > kOnnxSizeMax)
        return refuse(fmt::format("a size of {} was found", size));
    if (std::max(vocab_, sample_tokens()) > kOnnxSizeMax ||
        attention.heads % attention.kv_heads != 0)
      return refuse(fmt::format("{} heads, {} of keys, {} words and {} tokens were found",
                                attention.heads, attention.kv_heads, vocab_, sample_tokens()));
    const auto size = [](long long value) { return static_cast<int>(value); };
    ModelShape model;
    model.kind = attention.mask == 0 ? ModelKind::kEncoder : ModelKind::kGpt;
    model.layers = size(blocks);
    model.hidden = size(attention.hidden);
    model.heads = size(attention.heads);
    model.kv_heads = size(attention.kv_heads);
    model.head_dim = size(attention.head_dim);
    model.ffn_hidden = size(mlp.ffn_hidden);
    model.seq = size(sample_tokens());
    model.vocab = size(vocab_);
    model.activation = mlp.is_gated ? Activation::kSwiglu : Activation::kGelu;
    // Without an output layer there is none to count.
    model.tied_embeddings = head_.empty() || head_ == words_;
    if (attention.is_rotary)
      model.positions = PositionEncoding::kRotary;
    else
      model.positions = positions_ > 0 ? PositionEncoding::kLearned : PositionEncoding::kNone;
    model.norm = *found_norm;
    model.linear_biases = attention.has_out_bias && mlp.has_bias;
    model.qkv_biases = !model.linear_biases && attention.has_qkv_bias;
    if (is_too_large(model)) return refuse("its sizes make more than 10^15 parameters");
    return model;
  }

  OnnxTrace trace_;
  const std::string& file_;
  std::vector<OnnxAttention> attentions_;
  std::vector<Mlp> mlps_;
  std::vector<int> outs_;  // the output products of the attentions
  std::set<int> used_;     // products that attentions take
  std::string words_;      // the table of words; its rows:
  long long vocab_ = 0;
  long long positions_ = 0;
  std::string head_;  // the output layer's weight
};

}  // namespace

Result<ModelShape> model_of_graph(const OnnxGraph& graph, const std::string& file) {
  return Recovery(graph, file).run();
}

}  // namespace regatta::workload
