#include "regatta/gpu/sharing/internal/hook/report.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include <unistd.h>

namespace regatta::sharing::hook {

void report(std::string_view message) {
  constexpr int kMost = 20;
  static std::atomic<int> count = 0;
  if (count.fetch_add(1, std::memory_order_relaxed) >= kMost) return;
  char line[400];
  const int size = std::snprintf(line, sizeof line, "regatta gpu: %.*s\n",
                                 static_cast<int>(message.size()), message.data());
  const std::size_t most = std::min(static_cast<std::size_t>(size), sizeof line - 1);
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, line, most);
}

CUresult report_fault(const char* symbol) {
  char text[160];
  std::snprintf(text, sizeof text, "%s: no memory for the hook's own books; the call is refused",
                symbol);
  report(text);
  return CUDA_ERROR_OUT_OF_MEMORY;
}

}  // namespace regatta::sharing::hook
