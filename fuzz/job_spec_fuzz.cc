// fuzz/job_spec_fuzz.cc: any bytes as a submitted job and as quotas: what the controller accepts it
// can write, and read again after its restart.
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/platform/control/cluster_controller.h"

namespace {

using regatta::control::ClusterController;
using regatta::control::ClusterTables;

// The tables that a start of the controller would make of what is on the disk.
void check_restart(ClusterController& controller) {
  const auto effects = controller.take_effects();
  ClusterTables loaded;
  for (const auto& change : effects.changes) {
    REGATTA_CHECK(change.value && change.value->size() <= regatta::store::kValueMost);
    REGATTA_CHECK(change.key.size() <= regatta::store::kKeyMost);
    REGATTA_CHECK(
        load_record({change.key, change.revision, *change.value}, {}, loaded).has_value());
  }
  REGATTA_CHECK(finish_loading(controller.tables().last_revision, loaded).has_value());
  REGATTA_CHECK(loaded.jobs.size() == controller.tables().jobs.size());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ClusterController controller({}, {});
  const std::array jobs = {regatta::control::Submission{text, "ada"}};
  if (controller.submit(jobs, "key", "hash", {})) check_restart(controller);
  ClusterController quotas({}, {});
  if (quotas.set_quotas(text)) check_restart(quotas);
  return 0;
}
