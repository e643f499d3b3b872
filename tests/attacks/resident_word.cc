// Writes nonsense into the words of its client page that say what of its memory is on the device:
// the number that the first word says, again and again, and that it works.
#include <cstring>
#include <fstream>
#include <string>

#include <unistd.h>

#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "tests/attacks/attack.h"

namespace {

// The page that the hook shares with the daemon.
regatta_client_page* find_client_page() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);)
    if (line.find(REGATTA_CLIENT_PAGE_NAME) != line.npos)
      return reinterpret_cast<regatta_client_page*>(std::stoull(line, nullptr, 16));
  return nullptr;
}

}  // namespace

int main(int argc, char** argv) {
  const std::uint64_t word = regatta::attacks::number(argc, argv, 1, ~0ULL);
  CUdeviceptr address = 0;
  regatta::attacks::open_context();
  MUST(CU(cuMemAlloc_v2)(&address, 4 << 20));
  regatta_client_page* const page = find_client_page();
  if (page == nullptr) return 1;
  std::puts("writes");
  std::fflush(stdout);
  for (;; ::usleep(100)) {
    regatta_residency_state& state = page->residency[0];
    for (unsigned long long* const one : {&state.resident, &state.granted, &state.leased,
                                          &state.swapped_out, &state.moved_in, &state.moved_out})
      __atomic_store_n(one, word, __ATOMIC_SEQ_CST);
    __atomic_store_n(&state.doing, 2U, __ATOMIC_SEQ_CST);
    for (regatta_engine_usage& usage : page->engine_usage[0]) {
      __atomic_store_n(&usage.given, word, __ATOMIC_SEQ_CST);
      __atomic_store_n(&usage.waiting, ~0U, __ATOMIC_SEQ_CST);
    }
  }
}
