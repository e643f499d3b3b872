#include "tests/standin/fault.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/standin/process.h"

namespace regatta::standin {
namespace {

struct Fault {
  std::uint64_t first = 0;
  bool stays = false;
  CUresult code = CUDA_SUCCESS;
  std::chrono::microseconds delay{};
  bool ends_device = false;
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

std::string wanted_faults() {
  const char* const set = std::getenv("REGATTA_STANDIN_FAULTS");
  const std::string text = set == nullptr ? "" : set;
  if (!text.starts_with('@')) return text;
  std::ifstream file(text.substr(1));
  return {std::istreambuf_iterator<char>(file), {}};
}

Entries read_faults() {
  const std::string text = wanted_faults();
  std::string_view rest = text;
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
    const char kind = item.empty() ? ' ' : item.front();
    if (kind != '=' && kind != '~' && kind != '!') continue;
    item.remove_prefix(1);
    if (kind == '=') fault.code = take_number<CUresult>(item);
    if (kind == '~') fault.delay = std::chrono::microseconds(take_number<std::int64_t>(item));
    fault.ends_device = kind == '!';
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

namespace {

// The faults of the call, in the order in which they were requested.
std::vector<Fault> count_call(std::string_view entry) {
  const std::lock_guard lock(mutex);
  const auto at = wanted->find(entry);
  if (at == wanted->end()) return {};
  const std::uint64_t call = ++at->second.calls;
  std::vector<Fault> met;
  for (const Fault& fault : at->second.faults)
    if (call == fault.first || (fault.stays && call > fault.first)) met.push_back(fault);
  return met;
}

// The number of a device is that of the process that is it.
void end_devices() {
  const std::lock_guard lock(process().mutex);
  for (const auto& device : process().devices)
    kill(static_cast<pid_t>(device->id), SIGKILL);
}

}  // namespace

CUresult next_fault(std::string_view entry) {
  for (const Fault& fault : count_call(entry)) {
    if (fault.delay.count() > 0) std::this_thread::sleep_for(fault.delay);
    if (fault.ends_device) end_devices();
    if (fault.code != CUDA_SUCCESS) return fault.code;
  }
  return CUDA_SUCCESS;
}

}  // namespace regatta::standin
