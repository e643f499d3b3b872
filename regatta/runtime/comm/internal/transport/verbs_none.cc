#include <memory>
#include <string>

#include "regatta/runtime/comm/internal/transport/verbs.h"

namespace regatta::comm {
namespace {

const Error& not_built() {
  static const Error error{Code::kUnsupported,
                           "this build has no RDMA: install libibverbs-dev and build again"};
  return error;
}

}  // namespace

class VerbsDevice {};

Result<std::shared_ptr<VerbsDevice>> open_verbs(const std::string& /*address*/) {
  return not_built();
}
void expire_memory(VerbsDevice& /*device*/) {}
Result<std::unique_ptr<PeerLink>> make_verbs_link(VerbsLinkSetup /*setup*/, LinkSink& /*sink*/) {
  return not_built();
}

}  // namespace regatta::comm
