// fuzz/onnx_fuzz.cc: any bytes as a model in an ONNX file.

#include <cstddef>
#include <cstdint>

#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/onnx_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  google::protobuf::io::ArrayInputStream bytes(data, static_cast<int>(size));
  const auto graph = workload::read_onnx_graph(bytes, static_cast<long long>(size), "model.onnx");
  if (!graph) {
    REGATTA_CHECK(graph.error().message.rfind("model.onnx: ", 0) == 0);
    return 0;
  }
  const auto model = workload::model_of_graph(*graph, "model.onnx");
  if (!model) {
    REGATTA_CHECK(model.error().message.rfind("model.onnx: ", 0) == 0);
    return 0;
  }
  REGATTA_CHECK(workload::layer_parameters(*model) > 0);
  REGATTA_CHECK(workload::total_parameters(*model) > 0);
  return 0;
}
