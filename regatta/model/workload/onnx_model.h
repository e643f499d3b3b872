// workload/onnx_model.h: the shape of a model from the operators of an exported ONNX file.
#pragma once

#include <string>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/model.h"
#include "regatta/model/workload/onnx_graph.h"

namespace regatta::workload {

// Recovers decoders and encoders of equal blocks: attention is a Softmax between two products of
// activations, an MLP the products by weights that follow it. `seq` is 0 where the graph does not
// fix it, and tied embeddings show only where one tensor serves both ends (exporters often fold the
// transpose into a second one). Fails with kInvalidInput, saying what was found, for anything else;
// `file` names it in messages.
Result<ModelShape> model_of_graph(const OnnxGraph& graph, const std::string& file);

}  // namespace regatta::workload
