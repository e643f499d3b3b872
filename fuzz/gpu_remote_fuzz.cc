// fuzz/gpu_remote_fuzz.cc: any bytes as calls of a remote program: the first two say which call,
// the rest are its message; and as what the ends of a connection say when it begins. The driver
// says yes to everything and looks at nothing.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>

#include "experimental/remote/internal/host_process.h"
#include "experimental/remote/internal/pool.h"
#include "experimental/remote/internal/rendezvous.h"
#include "regatta/base/core/result.h"

namespace {

using namespace regatta::remote;  // NOLINT(google-build-using-namespace): a program of its
                                  // own

template <typename Arguments>
struct Yes;
template <Mode mode, typename... K>
struct Yes<Kinds<mode, K...>> {
  static CUresult call(typename K::Type...) { return CUDA_SUCCESS; }
};

// Three parameters with a gap.
CUresult parameters(CUfunction, std::size_t index, std::size_t* offset, std::size_t* bytes) {
  if (index >= 3) return CUDA_ERROR_INVALID_VALUE;
  *offset = index * 16;
  *bytes = index + 4;
  return CUDA_SUCCESS;
}

class YesDriver : public DriverFunctions {
 public:
  void* find(const char* symbol) override {
    static const std::map<std::string, void*> all = {
#define CALL(base, name, ...) \
  {#name, reinterpret_cast<void*>(&Yes<Row<CallNumber::name>::Arguments>::call)},
#define TWIN CALL
#define HAND CALL
#include "experimental/remote/internal/calls.inc"
    };
    const std::string name = symbol;
    if (name == "cuFuncGetParamInfo" || name == "cuKernelGetParamInfo")
      return reinterpret_cast<void*>(&parameters);
    const auto at = all.find(name);
    return at == all.end() ? nullptr : at->second;
  }
};

void check_rendezvous(std::string_view text) {
  if (const auto answer = parse_rendezvous_reply(text))
    REGATTA_CHECK(format_rendezvous_reply(*answer) == text);
  if (const auto card = parse_queue_card(text)) REGATTA_CHECK(format_queue_card(*card) == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static YesDriver driver;
  static auto* const host = [] {
    auto* const made = new HostProcess(driver);
    // Handles that fuzzing can guess.
    made->handles().add(reinterpret_cast<CUfunction>(0x1010101010101010));  // NOLINT: a handle
    made->handles().add(reinterpret_cast<CUstream>(0x1010101010101010));    // NOLINT: a handle
    return made;
  }();
  std::uint16_t number = 0;
  if (size < sizeof number) return 0;
  std::memcpy(&number, data, sizeof number);
  number %= static_cast<std::uint16_t>(CallNumber::kCount) + 1;
  Buffer answer;
  const auto message = std::as_bytes(std::span(data + sizeof number, size - sizeof number));
  const CUresult status = run_call(*host, number, message, answer);
  REGATTA_CHECK(status == CUDA_SUCCESS || answer.empty());
  REGATTA_CHECK(has_result(number) || answer.empty());
  static_cast<void>(
      pool_devices("a:1", std::string(reinterpret_cast<const char*>(data), size)).has_value());
  check_rendezvous({reinterpret_cast<const char*>(data), size});
  return 0;
}
