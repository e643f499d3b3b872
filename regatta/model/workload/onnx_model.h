// workload/onnx_model.h: the shape of a model from the operators of an exported ONNX file.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/model.h"

namespace google::protobuf::io {
class ZeroCopyInputStream;
}

namespace regatta::workload {

// The operator graph of an ONNX file: operators and the shapes of tensors.
// The contents of tensors, which make the size of such files, are skipped. Field numbers:
// onnx.proto of ONNX 1.12.

struct OnnxTensor {
  std::vector<long long> dims;
  std::vector<long long> numbers;  // of a short tensor of int64: the target of a Reshape
};

struct OnnxNode {
  std::string op;
  std::vector<std::string> inputs;  // "" for one that is left out
  std::vector<std::string> outputs;
  bool transposes_second = false;  // Gemm's transB
};

struct OnnxInput {
  std::string name;
  std::vector<long long> dims;  // 0 for one that is not fixed
};

struct OnnxGraph {
  std::vector<OnnxNode> nodes;                          // producers before consumers
  std::unordered_map<std::string, OnnxTensor> tensors;  // weights and constants
  std::vector<OnnxInput> inputs;
};

// `bytes` holds `size` bytes; `file` names them in messages. Fails with kInvalidInput when it is no
// ONNX file, is truncated, or is larger than 2 GiB, the most that the encoding allows.
Result<OnnxGraph> read_onnx_graph(google::protobuf::io::ZeroCopyInputStream& bytes, long long size,
                                  const std::string& file);

// Recovers decoders and encoders of equal blocks: attention is a Softmax between two products of
// activations, an MLP the products by weights that follow it. `seq` is 0 where the graph does not
// fix it, and tied embeddings show only where one tensor serves both ends (exporters often fold the
// transpose into a second one). Fails with kInvalidInput for any other graph and says what was
// found; `file` names it in messages.
Result<ModelShape> model_of_graph(const OnnxGraph& graph, const std::string& file);

}  // namespace regatta::workload
