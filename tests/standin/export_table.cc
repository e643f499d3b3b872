// Tables of functions beside the driver's interface, found by number. Those that the runtime
// library asks for are not documented; what is here of them is what it was seen to call and what
// ZLUDA says of them. All else that is called through them says that it cannot.
#include "tests/standin/export_table.h"

#include <array>
#include <cstring>

#include "tests/standin/api.h"
#include "tests/standin/codec.h"
#include "tests/standin/context_storage.h"

using namespace regatta::standin;

namespace {

CUresult refuse() {
  return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult load(CUmodule* module, const void* image) {
  return cuModuleLoadFatBinary(module, image);
}
CUresult load_more(CUmodule* module, const void* image, void*, void*, unsigned) {
  return cuModuleLoadFatBinary(module, image);
}
CUresult load_unwrapped(const void* image, CUmodule* module, void*, void*, unsigned) {
  return cuModuleLoadFatBinary(module, image);
}

// Places of the tools, which the runtime asks for and hands its calls to; nobody listens here.
std::uint64_t tools_words[1024];
std::uint64_t tools_bytes[2];
void show_tools_words(void** place, std::size_t* count) {
  *place = tools_words;
  *count = std::size(tools_words);
}
void show_tools_bytes(void** place, std::size_t* count) {
  constexpr std::size_t kCount = 14;
  *place = tools_bytes;
  *count = kCount;
}

using Table = std::array<const void*, 16>;
struct Slot {
  std::size_t number;
  const void* function;
};
template <typename Function>
Slot slot(std::size_t number, Function* function) {
  return {number, reinterpret_cast<const void*>(function)};
}

Table table_of(std::initializer_list<Slot> slots) {
  Table table;
  table.fill(reinterpret_cast<const void*>(&refuse));
  table[0] =
      reinterpret_cast<const void*>(sizeof table);  // NOLINT(performance-no-int-to-ptr): a size
  for (const Slot& one : slots)
    table[one.number] = one.function;
  return table;
}

const void* find_table(const CUuuid& id) {
  static const Table runtime =
      table_of({slot(kRuntimeLoad, load), slot(kRuntimeGetPrimary, cuDevicePrimaryCtxRetain),
                slot(kRuntimeLoadMore, load_more), slot(kRuntimeLoadUnwrapped, load_unwrapped)});
  static const Table tools = table_of({slot(2, show_tools_words), slot(6, show_tools_bytes)});
  static const Table tools_of_threads = table_of({});
  // This one has no size.
  static const Table storage =
      table_of({slot(kStoragePut, put_in_context), slot(kStorageRemove, remove_from_context),
                slot(kStorageGet, get_from_context)});
  const auto is = [&](const CUuuid& known) {
    return std::memcmp(id.bytes, known.bytes, sizeof id.bytes) == 0;
  };
  if (is(kRuntimeTable)) return runtime.data();
  if (is(kToolsTable)) return tools.data();
  if (is(kToolsOfThreadsTable)) return tools_of_threads.data();
  if (is(kStorageTable)) return storage.data();
  return is(kCodecTable) ? codec_table() : nullptr;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
extern "C" {

CUresult cuGetExportTable(const void** table, const CUuuid* id) {
  if (table == nullptr || id == nullptr) return CUDA_ERROR_INVALID_VALUE;
  *table = find_table(*id);
  return *table == nullptr ? CUDA_ERROR_NOT_FOUND : CUDA_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
