// fuzz/agent_files_fuzz.cc: any bytes as the files of a server's agent: its journal, the spec of a
// replica, how it ended, and what it measured. Files that are accepted are the same after they were
// written again.

#include <cstddef>
#include <cstdint>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/platform/node_agent/internal/journal_file.h"
#include "regatta/platform/node_agent/internal/metrics_file.h"
#include "regatta/platform/node_agent/internal/run_folder.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta::node_agent;  // NOLINT(google-build-using-namespace): a program
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto journal = parse_journal(text, "journal"))
    REGATTA_CHECK(journal->whole_bytes <= text.size());
  if (const auto spec = decode_replica_spec(text)) {
    const auto again = decode_replica_spec(encode(*spec));
    REGATTA_CHECK(again && *again == *spec && spec->ranks >= 1);
  }
  if (const auto exit = decode_replica_exit(text)) {
    const auto again = decode_replica_exit(encode(*exit));
    REGATTA_CHECK(again && *again == *exit);
  }
  MetricLines metrics;
  metrics.add(text);
  REGATTA_CHECK(metrics.json().starts_with("{\"series\":["));
  return 0;
}
