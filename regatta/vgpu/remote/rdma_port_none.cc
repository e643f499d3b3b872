#include "regatta/vgpu/remote/rdma_port.h"

namespace regatta::vgpu::remote {

Result<std::unique_ptr<RdmaPort>> open_rdma(const std::string& /*address*/) {
  return Error{Code::kUnsupported,
               "this build has no RDMA: install libibverbs-dev and build again"};
}

void leave_rdma() {}

}  // namespace regatta::vgpu::remote
