// Copies between host and device: checks that the data arrives, and measures how fast.
#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "tests/hook/program.h"
#include "tests/hook/program_rate.h"

namespace regatta::hook_test {
namespace {

struct Copies {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUdeviceptr device = 0;
  std::vector<unsigned char> host;

  bool open(std::size_t bytes) {
    host.resize(bytes);
    return CU(cuInit)(0) == CUDA_SUCCESS && CU(cuCtxCreate_v2)(&context, 0, 0) == CUDA_SUCCESS &&
           CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS &&
           CU(cuMemAlloc_v2)(&device, bytes) == CUDA_SUCCESS;
  }
};

CUdeviceptr address_of(void* memory) {
  return reinterpret_cast<CUdeviceptr>(memory);
}

// Bytes beyond a whole number of `units` are not copied; they are set as if they had been.
void fill_rest(const Copies& copies, std::vector<unsigned char>& back, std::size_t unit) {
  const auto rest = static_cast<std::ptrdiff_t>(back.size() % unit);
  std::copy(copies.host.end() - rest, copies.host.end(), back.end() - rest);
}

// From the host to the device; the sizes are still to be said.
template <typename Shape>
Shape shape_there(const Copies& copies) {
  Shape there{};
  there.srcMemoryType = CU_MEMORYTYPE_HOST;
  there.srcHost = copies.host.data();
  there.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  there.dstDevice = copies.device;
  return there;
}

// The same the other way.
template <typename Shape>
Shape shape_home(const Shape& there, std::vector<unsigned char>& back) {
  Shape home = there;
  std::swap(home.srcMemoryType, home.dstMemoryType);
  home.srcHost = nullptr;
  home.srcDevice = there.dstDevice;
  home.dstHost = back.data();
  return home;
}

// There and back by each pair of functions; whether the bytes are the same.
bool come_back(Copies& copies, unsigned seed, const std::string& way) {
  const std::size_t bytes = copies.host.size();
  std::vector<unsigned char> back(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    copies.host[i] = static_cast<unsigned char>(i * 31 + (i >> 12) + seed);
  CUresult result = CUDA_SUCCESS;
  const auto also = [&](CUresult next) { result = result == CUDA_SUCCESS ? next : result; };
  if (way == "now") {
    also(CU(cuMemcpyHtoD_v2)(copies.device, copies.host.data(), bytes));
    also(CU(cuMemcpyDtoH_v2)(back.data(), copies.device, bytes));
  } else if (way == "later") {
    also(CU(cuMemcpyHtoDAsync_v2)(copies.device, copies.host.data(), bytes, copies.stream));
    also(CU(cuMemcpyDtoHAsync_v2)(back.data(), copies.device, bytes, copies.stream));
  } else if (way == "rows") {
    constexpr std::size_t kWidth = 4096;
    auto there = shape_there<CUDA_MEMCPY2D>(copies);
    there.srcPitch = there.dstPitch = there.WidthInBytes = kWidth;
    there.Height = bytes / kWidth;
    const auto home = shape_home(there, back);
    also(CU(cuMemcpy2DAsync_v2)(&there, copies.stream));
    also(CU(cuMemcpy2D_v2)(&home));
    fill_rest(copies, back, kWidth);
  } else if (way == "boxes") {
    constexpr std::size_t kSide = 1024;  // of a plane
    auto there = shape_there<CUDA_MEMCPY3D>(copies);
    there.srcPitch = there.dstPitch = there.WidthInBytes = kSide;
    there.srcHeight = there.dstHeight = there.Height = kSide;
    there.Depth = bytes / (kSide * kSide);
    const auto home = shape_home(there, back);
    also(CU(cuMemcpy3D_v2)(&there));
    also(CU(cuMemcpy3DAsync_v2)(&home, copies.stream));
    fill_rest(copies, back, kSide * kSide);
  } else if (way == "batches") {
    CUdeviceptr to = copies.device;
    CUdeviceptr from = address_of(copies.host.data());
    std::size_t size = bytes;
    CUmemcpyAttributes attributes{};
    attributes.srcAccessOrder = 1;  // that of the stream
    std::size_t first = 0;
    also(CU(cuMemcpyBatchAsync_v2)(&to, &from, &size, 1, &attributes, &first, 1, copies.stream));
    from = copies.device;
    to = address_of(back.data());
    also(CU(cuMemcpyBatchAsync_v2)(&to, &from, &size, 1, &attributes, &first, 1, copies.stream));
  } else {
    also(CU(cuMemcpy)(copies.device, address_of(copies.host.data()), bytes));
    also(CU(cuMemcpyAsync)(address_of(back.data()), copies.device, bytes, copies.stream));
  }
  also(CU(cuStreamSynchronize)(copies.stream));
  return result == CUDA_SUCCESS && back == copies.host;
}

}  // namespace

int copy_there_and_back(std::size_t bytes) {
  Copies copies;
  if (!copies.open(bytes)) return 1;
  if (!wait_to_begin()) return 2;
  unsigned seed = 0;
  for (const char* const way : {"now", "later", "rows", "boxes", "batches", "between"}) {
    std::printf("%s %s\n", way, come_back(copies, ++seed, way) ? "the same" : "not the same");
    std::fflush(stdout);
  }
  // The copied data is checked while this still exists.
  static_cast<void>(std::getchar());
  return 0;
}

int copy_for(int seconds, std::size_t bytes, bool is_to_device) {
  Copies copies;
  if (!copies.open(bytes)) return 1;
  return run_for(seconds, bytes, [&] {
    const CUresult result =
        is_to_device
            ? CU(cuMemcpyHtoDAsync_v2)(copies.device, copies.host.data(), bytes, copies.stream)
            : CU(cuMemcpyDtoHAsync_v2)(copies.host.data(), copies.device, bytes, copies.stream);
    return result == CUDA_SUCCESS && CU(cuStreamSynchronize)(copies.stream) == CUDA_SUCCESS;
  });
}

}  // namespace regatta::hook_test
