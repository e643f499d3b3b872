#include "experimental/remote/internal/host_process.h"

#include <limits>

#include <dlfcn.h>

namespace regatta::remote {
namespace {

class Library : public DriverFunctions {
 public:
  explicit Library(void* library) : library_(library) {}
  void* find(const char* symbol) override { return ::dlsym(library_, symbol); }

 private:
  void* library_;
};

template <typename Arguments>
struct Server;

template <Mode mode, typename... K>
struct Server<Kinds<mode, K...>> {
  using Function = CUresult(typename K::Type...);
  using Slots = std::tuple<typename K::Slot...>;

  template <std::size_t... i>
  static CUresult run(HostProcess& host, Function* function, MessageReader reader, Buffer& answer,
                      std::index_sequence<i...>) {
    Slots slots;
    if (!(std::get<i>(slots).read(reader) && ...) || !reader.is_at_end()) return kBroken;
    if (function == nullptr) return kNotSupported;
    CUresult status = CUDA_SUCCESS;
    static_cast<void>((((status = std::get<i>(slots).fit(host, slots)) == CUDA_SUCCESS) && ...));
    if (status != CUDA_SUCCESS) return status;
    status = function(std::get<i>(slots).pass()...);
    if (status != CUDA_SUCCESS) return status;
    [[maybe_unused]] MessageWriter writer(answer);
    (std::get<i>(slots).answer(host.handles(), writer, slots), ...);
    return CUDA_SUCCESS;
  }
};

template <CallNumber number>
CUresult run_row(HostProcess& host, std::span<const std::byte> message, Buffer& answer) {
  using Arguments = typename Row<number>::Arguments;
  using Of = Server<Arguments>;
  auto* const function = host.find<typename Of::Function>(number, Row<number>::name);
  const CUresult status =
      Of::run(host, function, MessageReader(message), answer,
              std::make_index_sequence<std::tuple_size_v<typename Of::Slots>>());
  if constexpr (ends_functions(number)) host.forget_layouts();
  return status;
}

using Run = CUresult (*)(HostProcess&, std::span<const std::byte>, Buffer&);
constexpr Run kRows[] = {
#define CALL(base, symbol, ...) &run_row<CallNumber::symbol>,
#define TWIN CALL
#define HAND CALL
#include "experimental/remote/internal/calls.inc"
};
constexpr bool kHasResult[] = {
#define CALL(base, symbol, ...) Row<CallNumber::symbol>::Arguments::has_result,
#define TWIN CALL
#define HAND CALL
#include "experimental/remote/internal/calls.inc"
#include "regatta/base/core/mutex.h"
};
constexpr auto kCount = static_cast<std::size_t>(CallNumber::kCount);

}  // namespace

Result<std::unique_ptr<DriverFunctions>> load_driver(const std::string& path) {
  void* const library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr)
    return Error{Code::kUnsupported, path + ": this server's CUDA driver cannot be loaded: " +
                                         ::dlerror() + "; name another with --driver"};
  if (::dlsym(library, "cuInit") == nullptr)
    return Error{Code::kUnsupported, path + ": is no CUDA driver; name one with --driver"};
  return std::unique_ptr<DriverFunctions>(std::make_unique<Library>(library));
}

Handles& handles_of(HostProcess& host) {
  return host.handles();
}
CUresult host_layout(HostProcess& host, CUfunction function, ParameterLayout& layout) {
  return host.layout(function, layout);
}

void* HostProcess::find(std::size_t number, const char* name) {
  void* function = functions_[number].load(std::memory_order_relaxed);
  if (function == nullptr) functions_[number] = function = driver_.find(name);
  return function;
}

// The driver returns an offset and a size for each parameter, and an error after the last.
CUresult HostProcess::layout(CUfunction function, ParameterLayout& layout) {
  using Ask = CUresult(CUfunction, std::size_t, std::size_t*, std::size_t*);
  if (const CUresult known = handles_.check(function); known != CUDA_SUCCESS) return known;
  if (function == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  {
    const MutexLock lock(layouts_mutex_);
    if (const auto at = layouts_.find(function); at != layouts_.end()) {
      layout = at->second;
      return CUDA_SUCCESS;
    }
  }
  const bool is_kernel = handles_.is_kernel(reinterpret_cast<std::uint64_t>(function));
  auto* const ask = find<Ask>(is_kernel ? "cuKernelGetParamInfo" : "cuFuncGetParamInfo");
  if (ask == nullptr) return kNotSupported;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  layout.clear();
  CUresult status = CUDA_SUCCESS;
  while (layout.size() < kMostParameters &&
         (status = ask(function, layout.size(), &offset, &bytes)) == CUDA_SUCCESS) {
    if (offset > kMostParameterBytes || bytes > kMostParameterBytes) return kNotSupported;
    layout.push_back({static_cast<std::uint32_t>(offset), static_cast<std::uint32_t>(bytes)});
  }
  if (status != CUDA_ERROR_INVALID_VALUE)
    return status;  // CUDA_ERROR_INVALID_VALUE: there are no more
  const MutexLock lock(layouts_mutex_);
  layouts_[function] = layout;
  return CUDA_SUCCESS;
}

void HostProcess::forget_layouts() {
  const MutexLock lock(layouts_mutex_);
  layouts_.clear();
}

void HostProcess::note_start(std::uint64_t connection) {
  const MutexLock lock(mutex_);
  progress_[connection] = 0;
}

void HostProcess::note_progress(std::uint64_t connection, std::uint64_t count) {
  const MutexLock lock(mutex_);
  progress_[connection] = count;
  if (waiting_ > 0) changed_.notify_all();
}

void HostProcess::note_end(std::uint64_t connection) {
  note_progress(connection, std::numeric_limits<std::uint64_t>::max());
}

bool HostProcess::wait_for(const Fence& fence) {
  MutexLock lock(mutex_);
  const auto at = progress_.find(fence.connection);
  if (at == progress_.end()) return false;
  ++waiting_;
  changed_.wait(lock, [&] { return at->second >= fence.count; });
  --waiting_;
  return true;
}

std::byte* HostProcess::acquire_piece() {
  MutexLock lock(mutex_);
  ++waiting_;
  changed_.wait(lock, [&]() REGATTA_REQUIRES(mutex_) { return pieces_ < kMostPieces; });
  --waiting_;
  ++pieces_;
  return new std::byte[kPiece];
}

void HostProcess::release_piece(std::byte* piece) {
  delete[] piece;
  const MutexLock lock(mutex_);
  --pieces_;
  changed_.notify_all();
}

CUresult run_call(HostProcess& host, std::uint16_t number, std::span<const std::byte> message,
                  Buffer& answer) {
  return number < kCount ? kRows[number](host, message, answer) : kBroken;
}

bool has_result(std::uint16_t number) {
  return number < kCount && kHasResult[number];
}

}  // namespace regatta::remote
