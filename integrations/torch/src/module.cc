// The Python module regatta_torch._C: connects a group of ranks for torch.distributed.
#include <chrono>
#include <string>

#include <torch/csrc/utils/pybind.h>

#include "integrations/torch/src/process_group.h"

namespace regatta_torch {
namespace {

// NOLINTNEXTLINE(readability-function-size): Python names the arguments
c10::intrusive_ptr<TorchBase> connect(const c10::intrusive_ptr<c10d::Store>& store, int rank,
                                      int size, double timeout_s, const std::string& token,
                                      const std::string& server, const std::string& address) {
  return ProcessGroup::connect(store, {.rank = rank,
                                       .size = size,
                                       .timeout_s = timeout_s,
                                       .token = token,
                                       .server = server,
                                       .address = address});
}

}  // namespace
}  // namespace regatta_torch

PYBIND11_MODULE(_C, m) {
  m.def("connect", &regatta_torch::connect, pybind11::arg("store"), pybind11::arg("rank"),
        pybind11::arg("size"), pybind11::arg("timeout_s"), pybind11::arg("token"),
        pybind11::arg("server"), pybind11::arg("address"),
        pybind11::call_guard<pybind11::gil_scoped_release>());
  m.attr("torch_version") = TORCH_VERSION;
}
