#include "tests/standin/fault.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace regatta::standin {
namespace {

struct Fault {
  std::uint64_t first = 0;
  bool stays = false;
  CUresult code = CUDA_ERROR_UNKNOWN;
};
struct Entry {
  std::vector<Fault> faults;
  std::uint64_t calls = 0;
};
using Entries = std::map<std::string, Entry, std::less<>>;

template <typename Number>
Number take_number(std::string_view& text) {
  Number number = 0;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number).ptr;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

Entries read_faults() {
  const char* const set = std::getenv("REGATTA_STANDIN_FAULTS");
  std::string_view rest = set == nullptr ? "" : set;
  Entries entries;
  while (!rest.empty()) {
    std::string_view item = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), item.size() + 1));
    const std::size_t colon = item.find(':');
    if (colon == item.npos) continue;
    const std::string name(item.substr(0, colon));
    item.remove_prefix(colon + 1);
    Fault fault{.first = take_number<std::uint64_t>(item)};
    fault.stays = item.starts_with('+');
    if (fault.stays) item.remove_prefix(1);
    if (!item.starts_with('=')) continue;
    item.remove_prefix(1);
    fault.code = take_number<CUresult>(item);
    entries[name].faults.push_back(fault);
  }
  return entries;
}

Entries* const wanted = new Entries(read_faults());
std::mutex mutex;

}  // namespace

bool has_faults() {
  return wanted != nullptr && !wanted->empty();
}

CUresult next_fault(std::string_view entry) {
  const std::lock_guard lock(mutex);
  const auto at = wanted->find(entry);
  if (at == wanted->end()) return CUDA_SUCCESS;
  const std::uint64_t call = ++at->second.calls;
  for (const Fault& fault : at->second.faults)
    if (call == fault.first || (fault.stays && call > fault.first)) return fault.code;
  return CUDA_SUCCESS;
}

}  // namespace regatta::standin
