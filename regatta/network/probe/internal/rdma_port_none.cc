#include "regatta/network/probe/internal/rdma_port.h"

namespace regatta::probe {

Result<std::unique_ptr<RdmaPort>> RdmaPort::open(const std::set<std::uint32_t>& /*addresses*/,
                                                 const std::set<std::uint16_t>& /*ports*/) {
  return Error{Code::kUnsupported,
               "this build has no RDMA: install libibverbs-dev and build again"};
}

}  // namespace regatta::probe
