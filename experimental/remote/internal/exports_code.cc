// Modules and kernels on the client: images from files, compiler options, layouts.
#include <cstdio>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>

#include "experimental/remote/internal/exports.h"
#include "regatta/base/core/mutex.h"

namespace regatta::remote {
namespace {

struct Layouts {
  Mutex mutex;
  std::unordered_map<CUfunction, std::shared_ptr<const ParameterLayout>> known
      REGATTA_GUARDED_BY(mutex);
};
Layouts& layouts() {
  static auto* const all = new Layouts;
  return *all;
}

std::shared_ptr<const ParameterLayout>& last_found() {
  static thread_local std::shared_ptr<const ParameterLayout> found;
  return found;
}

}  // namespace

CUresult find_layout(CUfunction function) {
  Layouts& all = layouts();
  {
    const MutexLock lock(all.mutex);
    if (const auto at = all.known.find(function); at != all.known.end()) {
      last_found() = at->second;
      return CUDA_SUCCESS;
    }
  }
  RemoteSession::Message message(static_cast<std::uint16_t>(ControlMessage::kLayout), true);
  if (message.status() != CUDA_SUCCESS) return message.status();
  message.writer().put(function);
  std::span<const std::byte> answer;
  if (const CUresult status = message.exchange(answer); status != CUDA_SUCCESS) return status;
  ParameterLayout layout(answer.size() / sizeof(KernelParameter));
  if (!layout.empty())
    std::memcpy(layout.data(), answer.data(), layout.size() * sizeof(KernelParameter));
  last_found() = std::make_shared<const ParameterLayout>(std::move(layout));
  const MutexLock lock(all.mutex);
  all.known[function] = last_found();
  return CUDA_SUCCESS;
}

const ParameterLayout& found_layout() {
  return *last_found();
}

void forget_layouts() {
  const MutexLock lock(layouts().mutex);
  layouts().known.clear();
}

const char* keep_text(std::string_view text) {
  static auto* const mutex = new Mutex;
  static auto* const texts = new std::set<std::string, std::less<>>;
  const MutexLock lock(*mutex);
  return texts->emplace(text).first->c_str();
}

namespace {

// The options without message buffers, which stay empty, and without times.
struct JitNumbers {
  std::vector<int> names;
  std::vector<std::uint64_t> values;
  JitNumbers(unsigned count, const int* given, void** given_values) {
    constexpr int kFirstOfMessages = 2;
    constexpr int kInfoBytes = 4;
    constexpr int kLastOfMessages = 6;
    for (unsigned i = 0; i < count; ++i) {
      if (given[i] == kInfoBytes || given[i] == kLastOfMessages) given_values[i] = nullptr;
      if (given[i] >= kFirstOfMessages && given[i] <= kLastOfMessages) continue;
      names.push_back(given[i]);
      values.push_back(reinterpret_cast<std::uint64_t>(given_values[i]));
    }
  }
  unsigned count() const { return static_cast<unsigned>(names.size()); }
  void** words() { return reinterpret_cast<void**>(values.data()); }
};

CUresult read_image(const char* path, Buffer& image) {
  constexpr CUresult kFileNotFound = 301;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path, "rb"), std::fclose);
  if (!file) return kFileNotFound;
  std::byte part[1 << 16];
  for (std::size_t count = 0; (count = std::fread(part, 1, sizeof part, file.get())) > 0;)
    image.insert(image.end(), part, part + count);
  image.push_back(std::byte{0});
  if (std::ferror(file.get()) != 0) return kFileNotFound;
  return holds_image(image) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
}

}  // namespace
}  // namespace regatta::remote

using namespace regatta::remote;  // NOLINT(google-build-using-namespace): nothing else is
                                  // here

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count, int* names,
                            void** values) {
  JitNumbers plain(count, names, values);
  return call<CallNumber::cuModuleLoadDataEx>(module, image, plain.count(), plain.names.data(),
                                              plain.words());
}

CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return call<CallNumber::cuModuleLoadData>(module, image);
}

CUresult cuModuleLoad(CUmodule* module, const char* path) {
  Buffer image;
  if (const CUresult read = read_image(path, image); read != CUDA_SUCCESS) return read;
  return call<CallNumber::cuModuleLoadData>(module, image.data());
}

CUresult cuLibraryLoadData(CUlibrary* library, const void* image, int* names, void** values,
                           unsigned count, int* options, void** option_values,
                           unsigned option_count) {
  JitNumbers plain(count, names, values);
  return call<CallNumber::cuLibraryLoadData>(library, image, plain.names.data(), plain.words(),
                                             plain.count(), options, option_values, option_count);
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, int* names, void** values,
                               unsigned count, int* options, void** option_values,
                               unsigned option_count) {
  Buffer image;
  if (const CUresult read = read_image(path, image); read != CUDA_SUCCESS) return read;
  return cuLibraryLoadData(library, image.data(), names, values, count, options, option_values,
                           option_count);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
