// Steps of random programs: allocations of all kinds.
#include <iterator>

#include "tests/attacks/random_program.h"
#include "tests/attacks/random_steps.h"

namespace regatta::attacks {
namespace {

void allocate(RandomProgram& program) {
  CUdeviceptr address = 0;
  const std::uint64_t bytes = program.size();
  const CUresult result = CU(cuMemAlloc_v2)(&address, bytes);
  program.hold(result, [=] { return CU(cuMemFree_v2)(address); },
               {.address = address, .bytes = bytes, .is_block = bytes % (2 * kMiB) == 0});
}

void allocate_rows(RandomProgram& program) {
  CUdeviceptr address = 0;
  std::size_t pitch = 0;
  const std::uint64_t width = 1 + program.below(5000);
  const std::uint64_t height = 1 + program.below(3000);
  const CUresult result = CU(cuMemAllocPitch_v2)(&address, &pitch, width, height, 4);
  program.hold(result, [=] { return CU(cuMemFree_v2)(address); },
               {.address = address, .bytes = pitch * height});
}

// On a full device it lies with the host, and counts all the same.
void allocate_managed(RandomProgram& program) {
  if (program.options().is_small != 0 || program.options().is_swappable != 0) return;
  CUdeviceptr address = 0;
  const std::uint64_t bytes = 1 + program.below(6 * kMiB);
  const CUresult result = CU(cuMemAllocManaged)(&address, bytes, 1);
  program.hold(result, [=] { return CU(cuMemFree_v2)(address); },
               {.address = address, .bytes = bytes});
}

void create_physical(RandomProgram& program) {
  const CUmemAllocationProp properties = {.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = kHere};
  const CUmemAccessDesc access{kHere, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUdeviceptr range = 0;
  const std::uint64_t bytes = (1 + program.below(6)) * 2 * kMiB;
  const CUresult result = CU(cuMemCreate)(&handle, bytes, &properties, 0);
  if (program.below(2) == 0 || result != CUDA_SUCCESS) {
    program.hold(result, [=] { return CU(cuMemRelease)(handle); });
    return;
  }
  MUST(CU(cuMemAddressReserve)(&range, bytes, 0, 0, 0));
  MUST(CU(cuMemMap)(range, bytes, 0, handle, 0));
  MUST(CU(cuMemRelease)(handle));
  MUST(CU(cuMemSetAccess)(range, bytes, &access, 1));
  const auto give = [=] {
    const CUresult unmapped = CU(cuMemUnmap)(range, bytes);
    MUST(CU(cuMemAddressFree)(range, bytes));
    return unmapped;
  };
  program.hold(result, give, {.address = range, .bytes = bytes});
}

void create_array(RandomProgram& program) {
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR shape = {
      1 + program.below(600), 1 + program.below(600), program.below(8), CU_AD_FORMAT_FLOAT, 1, 0};
  const CUDA_ARRAY_DESCRIPTOR_v1 old = {static_cast<unsigned>(1 + program.below(3000)),
                                        static_cast<unsigned>(1 + program.below(1000)),
                                        CU_AD_FORMAT_FLOAT, 4};
  const CUresult result = program.below(2) == 0 ? CU(cuArray3DCreate_v2)(&array, &shape)
                                                : CU(cuArrayCreate)(&array, &old);
  program.hold(result, [=] { return CU(cuArrayDestroy)(array); });
}

void create_mipmap(RandomProgram& program) {
  CUmipmappedArray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR shape = {
      1 + program.below(2000), 1 + program.below(1000), 0, CU_AD_FORMAT_FLOAT, 2, 0};
  const auto levels = static_cast<unsigned>(1 + program.below(14));
  const CUresult result = CU(cuMipmappedArrayCreate)(&array, &shape, levels);
  program.hold(result, [=] { return CU(cuMipmappedArrayDestroy)(array); });
}

void allocate_in_stream(RandomProgram& program) {
  CUdeviceptr address = 0;
  CUstream const stream = program.stream();
  const std::uint64_t bytes = program.size();
  const CUresult result = CU(cuMemAllocAsync)(&address, bytes, stream);
  program.hold(result, [=] { return CU(cuMemFreeAsync)(address, stream); },
               {.address = address, .bytes = bytes});
}

void use_a_pool(RandomProgram& program) {
  CUmemoryPool pool = nullptr;
  const CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = kHere};
  std::uint64_t keep = program.below(2) * 100 * kMiB;
  std::vector<CUdeviceptr> addresses(1 + program.below(5));
  MUST(CU(cuMemPoolCreate)(&pool, &properties));
  MUST(CU(cuMemPoolSetAttribute)(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep));
  for (CUdeviceptr& address : addresses)
    if (CU(cuMemAllocFromPoolAsync)(&address, program.size(), pool, program.stream()) !=
        CUDA_SUCCESS)
      address = 0;
  for (const CUdeviceptr address : addresses)
    if (address != 0) MUST(CU(cuMemFreeAsync)(address, program.stream()));
  if (program.below(2) == 0) MUST(CU(cuStreamSynchronize)(program.stream()));
  MUST(CU(cuMemPoolDestroy)(pool));
  MUST(CU(cuCtxSynchronize)());
}

void give(RandomProgram& program) {
  program.give_one();
}
void check(RandomProgram& program) {
  program.check_one();
}

}  // namespace

std::span<const RandomStep> memory_steps() {
  static constexpr RandomStep kSteps[] = {{"cuMemAlloc", allocate},
                                          {"cuMemAlloc", allocate},
                                          {"cuMemAllocPitch", allocate_rows},
                                          {"cuMemAllocManaged", allocate_managed},
                                          {"cuMemCreate", create_physical},
                                          {"an array", create_array},
                                          {"a mipmapped array", create_mipmap},
                                          {"cuMemAllocAsync", allocate_in_stream},
                                          {"a pool", use_a_pool},
                                          {"a release", give},
                                          {"a release", give},
                                          {"a release", give},
                                          {"a release", give},
                                          {"a look at what was written", check},
                                          {"a look at what was written", check}};
  return kSteps;
}

}  // namespace regatta::attacks
