// A program that uses the driver and knows nothing of tenants: takes device memory, writes to all
// of it, and in each round launches, looks whether its memory is as it left it, and changes some.
// NUMBER CONTROL BYTES KIND: its number, a descriptor of the control, what it takes, and how:
// swappable; staying, as memory that cannot be moved piece by piece; sharing, as swappable, with a
// little that others may open; hoarding, as staying, and then tries to share some; showing, as
// staying, with a little that it shows to others when it is told to; copying, as swappable, touched
// by no launch but by copies of all kinds; graphs, as swappable, with a graph that takes memory in
// each round.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/gpu_swap/program_control.h"
#include "tests/standin/api.h"

namespace regatta::gpu_swap {
namespace {

void* symbol(const char* name) {
  static void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* const found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) std::abort();
  return found;
}
#define CU(name) (reinterpret_cast<decltype(&::name)>(symbol(#name)))
// A failed check is printed and ends the program.
#define NEED(condition)                                               \
  do {                                                                \
    if (!(condition)) {                                               \
      std::fprintf(stderr, "%d: not so: %s\n", __LINE__, #condition); \
      return 1;                                                       \
    }                                                                 \
  } while (false)

constexpr std::size_t kPiece = 8 << 20;
constexpr const char* kKernels =
    ".version 6.4\n.target sm_75\n.address_size 64\n.visible .entry spin_1ms() { ret; }\n";

struct Piece {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  unsigned value = 0;  // of every word
  unsigned first = 0;  // of the first one
};

// A buffer for copies that is never swapped out.
struct Way {
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUarray array = nullptr;
  CUdeviceptr scratch = 0;
};

// As programs take memory, in every way that has an address.
CUresult take(CUdeviceptr* address, std::size_t* bytes, std::size_t number, CUstream stream) {
  if (number % 3 == 1) {
    std::size_t pitch = 0;
    const CUresult result = CU(cuMemAllocPitch_v2)(address, &pitch, 1000, *bytes / 1024, 4);
    *bytes = pitch * (*bytes / 1024);
    return result;
  }
  if (number % 3 == 2) return CU(cuMemAllocAsync)(address, *bytes, stream);
  return CU(cuMemAlloc_v2)(address, *bytes);
}

// As they take what cannot be moved by itself: from a pool of their own, mapped, and in small
// pieces.
CUresult take_staying(CUdeviceptr* address, std::size_t bytes, std::size_t number,
                      CUstream stream) {
  const CUmemLocation here{CU_MEM_LOCATION_TYPE_DEVICE, 0};
  if (number % 2 == 0) {
    static CUmemoryPool pool = nullptr;
    const CUmemPoolProps properties{.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
    if (pool == nullptr && CU(cuMemPoolCreate)(&pool, &properties) != CUDA_SUCCESS) return 999;
    return CU(cuMemAllocFromPoolAsync)(address, bytes, pool, stream);
  }
  const CUmemAllocationProp properties{.type = CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
  const CUmemAccessDesc access{here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  CUmemGenericAllocationHandle handle = 0;
  CUresult result = CU(cuMemCreate)(&handle, bytes, &properties, 0);
  if (result == CUDA_SUCCESS) result = CU(cuMemAddressReserve)(address, bytes, 0, 0, 0);
  if (result == CUDA_SUCCESS) result = CU(cuMemMap)(*address, bytes, 0, handle, 0);
  return result == CUDA_SUCCESS ? CU(cuMemSetAccess)(*address, bytes, &access, 1) : result;
}

// Work that takes 12 MiB while it runs, and gives them back.
CUresult launch_graph(CUstream stream) {
  CUgraph graph = nullptr;
  CUgraphNode node = nullptr;
  CUgraphNode end = nullptr;
  CUgraphExec executable = nullptr;
  CUDA_MEM_ALLOC_NODE_PARAMS memory{};
  memory.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                      .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
  memory.bytesize = 12 << 20;
  if (CU(cuGraphCreate)(&graph, 0) != CUDA_SUCCESS ||
      CU(cuGraphAddMemAllocNode)(&node, graph, nullptr, 0, &memory) != CUDA_SUCCESS ||
      CU(cuGraphAddMemFreeNode)(&end, graph, &node, 1, memory.dptr) != CUDA_SUCCESS ||
      CU(cuGraphInstantiateWithFlags)(&executable, graph, 0) != CUDA_SUCCESS)
    return 999;
  const CUresult result = CU(cuGraphLaunch)(executable, stream);
  const bool is_over = CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS &&
                       CU(cuGraphExecDestroy)(executable) == CUDA_SUCCESS &&
                       CU(cuGraphDestroy)(graph) == CUDA_SUCCESS &&
                       CU(cuDeviceGraphMemTrim)(0) == CUDA_SUCCESS;
  return is_over ? result : 999;
}

// Others may open it from now on; what that returns.
CUresult share_some() {
  CUdeviceptr address = 0;
  CUipcMemHandle handle{};
  const CUresult result = CU(cuMemAlloc_v2)(&address, 1000);
  return result == CUDA_SUCCESS ? CU(cuIpcGetMemHandle)(&handle, address) : result;
}

bool holds(const Piece& piece, std::vector<unsigned>& buffer) {
  if (CU(cuMemcpyDtoH_v2)(buffer.data(), piece.address, piece.bytes) != CUDA_SUCCESS) return false;
  for (std::size_t i = 0; i < piece.bytes / sizeof(unsigned); ++i)
    if (buffer[i] != piece.value) return false;
  return true;
}

// A word at the begin, in the middle and at the end of every piece.
bool is_as_left(const std::vector<Piece>& pieces) {
  for (const Piece& piece : pieces) {
    for (const std::size_t at : {std::size_t{0}, piece.bytes / 8 * 4, piece.bytes - 4}) {
      unsigned word = ~piece.value;
      if (CU(cuMemcpyDtoH_v2)(&word, piece.address + at, sizeof word) != CUDA_SUCCESS) return false;
      if (word != (at == 0 ? piece.first : piece.value)) {
        std::fprintf(stderr, "%x at %zu of a piece, not %x\n", word, at, piece.value);
        return false;
      }
    }
  }
  return true;
}

bool make_way(Way& way) {
  const CUDA_ARRAY_DESCRIPTOR shape{1024, 0, CU_AD_FORMAT_FLOAT, 1};
  return CU(cuArrayCreate_v2)(&way.array, &shape) == CUDA_SUCCESS &&
         CU(cuMemAlloc_v2)(&way.scratch, 4096) == CUDA_SUCCESS;
}

// The first word of every piece, all in one call.
bool batch_holds(const std::vector<Piece>& pieces, CUstream stream) {
  std::vector<unsigned> words(pieces.size(), 0);
  std::vector<CUdeviceptr> to;
  std::vector<CUdeviceptr> from;
  std::vector<std::size_t> bytes(pieces.size(), 4);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    to.push_back(reinterpret_cast<CUdeviceptr>(&words[i]));
    from.push_back(pieces[i].address);
  }
  CUmemcpyAttributes attributes{.srcAccessOrder = 1};
  std::size_t first = 0;
  if (CU(cuMemcpyBatchAsync_v2)(to.data(), from.data(), bytes.data(), bytes.size(), &attributes,
                                &first, 1, stream) != CUDA_SUCCESS ||
      CU(cuStreamSynchronize)(stream) != CUDA_SUCCESS)
    return false;
  for (std::size_t i = 0; i < pieces.size(); ++i)
    if (words[i] != pieces[i].first) return false;
  return true;
}

CUDA_MEMCPY3D_PEER word_between(const Way& way, CUdeviceptr to, CUdeviceptr from) {
  CUDA_MEMCPY3D_PEER box{};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcContext = box.dstContext = way.context;
  box.srcDevice = from;
  box.dstDevice = to;
  box.WidthInBytes = 4;
  box.Height = box.Depth = 1;
  return box;
}

// Copies of one kind, the first calls since the memory may have gone; some change a first word.
bool copy_round(unsigned round, std::vector<Piece>& pieces, const Way& way) {
  Piece& piece = pieces[round % pieces.size()];
  const CUDA_MEMCPY3D_PEER out = word_between(way, way.scratch, piece.address);
  const CUDA_MEMCPY3D_PEER in = word_between(way, piece.address, way.scratch);
  unsigned word = 0;
  switch (round % 7) {
    case 0:
      return batch_holds(pieces, way.stream);
    case 1:
      return CU(cuMemcpyPeer)(way.scratch, way.context, piece.address, way.context, 4) ==
                 CUDA_SUCCESS &&
             CU(cuMemcpyDtoH_v2)(&word, way.scratch, 4) == CUDA_SUCCESS && word == piece.first;
    case 2:
      return CU(cuMemcpyDtoA_v2)(way.array, 0, piece.address, 4) == CUDA_SUCCESS &&
             CU(cuMemcpyAtoH_v2)(&word, way.array, 0, 4) == CUDA_SUCCESS && word == piece.first;
    case 5:
      return CU(cuMemcpy3DPeer)(&out) == CUDA_SUCCESS &&
             CU(cuMemcpyDtoH_v2)(&word, way.scratch, 4) == CUDA_SUCCESS && word == piece.first;
    case 6:
      piece.first += 0x100000;
      return CU(cuMemcpyHtoD_v2)(way.scratch, &piece.first, 4) == CUDA_SUCCESS &&
             CU(cuMemcpy3DPeerAsync)(&in, way.stream) == CUDA_SUCCESS &&
             CU(cuStreamSynchronize)(way.stream) == CUDA_SUCCESS;
    case 3:
      piece.first += 0x100000;
      return CU(cuMemcpyHtoA_v2)(way.array, 0, &piece.first, 4) == CUDA_SUCCESS &&
             CU(cuMemcpyAtoD_v2)(piece.address, way.array, 0, 4) == CUDA_SUCCESS;
    default:
      piece.first += 0x100000;
      return CU(cuMemcpyHtoD_v2)(way.scratch, &piece.first, 4) == CUDA_SUCCESS &&
             CU(cuMemcpyPeerAsync)(piece.address, way.context, way.scratch, way.context, 4,
                                   way.stream) == CUDA_SUCCESS &&
             CU(cuStreamSynchronize)(way.stream) == CUDA_SUCCESS;
  }
}

// Until it is told to stop: whether all was always as it was left.
bool copy_until_stopped(int number, ProgramControl& control, std::vector<Piece>& pieces, Way way) {
  if (!make_way(way)) return false;
  ++control.ready;
  for (unsigned round = 0; !control.stop; ++round) {
    if (control.idle[number]) {
      usleep(2000);
      continue;
    }
    if (!copy_round(round, pieces, way)) {
      std::fprintf(stderr, "copies of kind %u failed\n", round % 7);
      return false;
    }
    ++control.rounds[number];
    usleep(60'000);  // idle again
  }
  return is_as_left(pieces);
}

int work(int number, ProgramControl& control, std::size_t bytes, const std::string& kind) {
  CUcontext context = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUstream stream = nullptr;
  NEED(CU(cuInit)(0) == CUDA_SUCCESS);
  NEED(CU(cuCtxCreate_v2)(&context, 0, 0) == CUDA_SUCCESS);
  NEED(CU(cuModuleLoadData)(&module, kKernels) == CUDA_SUCCESS);
  NEED(CU(cuModuleGetFunction)(&function, module, "spin_1ms") == CUDA_SUCCESS);
  NEED(CU(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  if (kind == "sharing") NEED(share_some() == CUDA_SUCCESS);
  CUdeviceptr shown = 0;
  if (kind == "showing") NEED(CU(cuMemAlloc_v2)(&shown, 1000) == CUDA_SUCCESS);
  std::vector<Piece> pieces;
  std::vector<unsigned> buffer(kPiece / sizeof(unsigned));
  for (std::size_t left = bytes / kPiece * kPiece; left > 0; left -= kPiece) {
    Piece piece{.bytes = kPiece, .value = static_cast<unsigned>(number) << 24};
    piece.first = piece.value += static_cast<unsigned>(pieces.size());
    const CUresult taken = kind == "staying" || kind == "hoarding" || kind == "showing"
                               ? take_staying(&piece.address, piece.bytes, pieces.size(), stream)
                               : take(&piece.address, &piece.bytes, pieces.size(), stream);
    if (taken == CUDA_ERROR_OUT_OF_MEMORY) {
      std::fprintf(stderr, "%s: no memory for piece %zu\n", kind.c_str(), pieces.size());
      return 2;
    }
    NEED(taken == CUDA_SUCCESS);
    NEED(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
    NEED(CU(cuMemsetD32_v2)(piece.address, piece.value, piece.bytes / 4) == CUDA_SUCCESS);
    pieces.push_back(piece);
  }
  if (kind == "copying")
    return copy_until_stopped(number, control, pieces, {.context = context, .stream = stream}) ? 0
                                                                                               : 1;
  if (kind == "hoarding") {
    for (int i = 0; i < 3; ++i)
      NEED(share_some() == CUDA_ERROR_NOT_SUPPORTED);
    return 3;
  }
  unsigned type = 0;
  NEED(CU(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                 pieces[0].address + 5000) == CUDA_SUCCESS);
  NEED(type == CU_MEMORYTYPE_DEVICE);
  CUdeviceptr base = 0;
  std::size_t size = 0;
  NEED(CU(cuMemGetAddressRange_v2)(&base, &size, pieces[0].address + 5000) == CUDA_SUCCESS);
  NEED(base == pieces[0].address && size == pieces[0].bytes);
  ++control.ready;
  for (unsigned round = 0; !control.stop; ++round) {
    if (control.idle[number]) {
      CUipcMemHandle handle{};
      if (control.shows[number] == 1) {
        NEED(CU(cuIpcGetMemHandle)(&handle, shown) == CUDA_SUCCESS);
        control.shows[number] = 2;
      }
      usleep(2000);
      continue;
    }
    for (int i = 0; i < 4; ++i)
      NEED(CU(cuLaunchKernel)(function, 1, 1, 1, 1, 1, 1, 0, stream, nullptr, nullptr) ==
           CUDA_SUCCESS);
    NEED(kind != "graphs" || launch_graph(stream) == CUDA_SUCCESS);
    NEED(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
    NEED(is_as_left(pieces));
    Piece& piece = pieces[round % pieces.size()];
    NEED(holds(piece, buffer));
    piece.first = piece.value += 0x1000;
    NEED(CU(cuMemsetD32Async)(piece.address, piece.value, piece.bytes / 4, stream) == CUDA_SUCCESS);
    NEED(CU(cuStreamSynchronize)(stream) == CUDA_SUCCESS);
    ++control.rounds[number];
  }
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    NEED(holds(pieces[i], buffer));
    if (kind == "staying" || kind == "showing") continue;  // goes with the process
    NEED((i % 2 == 0 ? CU(cuMemFree_v2)(pieces[i].address)
                     : CU(cuMemFreeAsync)(pieces[i].address, stream)) == CUDA_SUCCESS);
  }
  NEED(CU(cuCtxDestroy_v2)(context) == CUDA_SUCCESS);
  return 0;
}

}  // namespace
}  // namespace regatta::gpu_swap

int main(int argc, char** argv) {
  using regatta::gpu_swap::ProgramControl;
  if (argc != 5) return 64;
  void* const memory = mmap(nullptr, sizeof(ProgramControl), PROT_READ | PROT_WRITE, MAP_SHARED,
                            std::stoi(argv[2]), 0);
  if (memory == MAP_FAILED) return 65;
  return regatta::gpu_swap::work(std::stoi(argv[1]), *static_cast<ProgramControl*>(memory),
                                 std::stoull(argv[3]), argv[4]);
}
