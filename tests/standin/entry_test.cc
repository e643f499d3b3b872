// How functions are found: names, versions, flags.
#include <set>
#include <string>

#include "tests/standin/fixture.h"

namespace regatta::standin {
namespace {

struct Row {
  const char* base;
  const char* symbol;
  int since;
  bool is_twin;
};
const Row kRows[] = {
#define SYMBOL(base, symbol, since) {#base, #symbol, since, false},
#define TWIN(base, symbol, twin, since) {#base, #twin, since, true},
#include "tests/standin/symbols.inc"
#undef SYMBOL
#undef TWIN
};

// The documented answer: the newest variant at or before the version, with the thread's own stream
// where that is asked for and there is such a variant.
const Row* expected_row(const std::string& base, int version, std::uint64_t flags) {
  const Row* best = nullptr;
  for (const bool twins : {false, true}) {
    if (twins && flags != CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) break;
    const Row* found = nullptr;
    for (const Row& row : kRows)
      if (row.base == base && row.is_twin == twins && row.since <= version &&
          (found == nullptr || row.since > found->since))
        found = &row;
    if (found != nullptr) best = found;
  }
  return best;
}

TEST(CudaEntry, ExportsEverySymbolOfTheTable) {
  for (const Row& row : kRows)
    EXPECT_NE(driver_symbol(row.symbol), nullptr) << row.symbol;
}

TEST(CudaEntry, ExportsNothingOfItsOwn) {
  if (is_real_driver()) GTEST_SKIP() << "it exports what it likes";
  EXPECT_EQ(driver_symbol("resolve_cuLaunchKernel_ptsz"), nullptr);
  EXPECT_EQ(driver_symbol("_ZN7regatta7standin7processEv"), nullptr);
}

// Null: a real driver has variants that the table does not list.
const char* name_of(const void* function) {
  for (const Row& row : kRows)
    if (driver_symbol(row.symbol) == function) return row.symbol;
  return nullptr;
}

TEST(CudaEntry, FindsTheNewestVariantThatAVersionKnows) {
  const auto find = CU(cuGetProcAddress_v2);
  std::set<std::string> bases;
  std::set<std::string> wrong;
  for (const Row& row : kRows)
    bases.insert(row.base);
  for (const std::string& base : bases)
    for (int version = 2000; version <= 13000; version += 10)
      for (const std::uint64_t flags : {0, 1, 2}) {
        void* function = &bases;
        int status = -1;
        ASSERT_EQ(find(base.c_str(), &function, version, flags, &status), CUDA_SUCCESS);
        const Row* const row = expected_row(base, version, flags);
        const int expected = row == nullptr ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
                                            : CU_GET_PROC_ADDRESS_SUCCESS;
        if (function == (row == nullptr ? nullptr : driver_symbol(row->symbol)) &&
            status == expected)
          continue;
        const char* const name = name_of(function);
        if (is_real_driver() && (row == nullptr || name == nullptr)) continue;
        wrong.insert(base + " is " + (name == nullptr ? "no function of the table" : name) +
                     " and not " + (row == nullptr ? "none" : row->symbol));
      }
  EXPECT_THAT(wrong, testing::IsEmpty());
}

TEST(CudaEntry, SaysThatAnUnknownNameIsUnknownWithoutAnError) {
  for (const char* const name : {"cuNothing", "", "cuMemAlloc_v2", "cuLaunchKernel_ptsz"}) {
    int status = -1;
    void* function = &status;
    EXPECT_EQ(CU(cuGetProcAddress_v2)(name, &function, 12000, 0, &status), CUDA_SUCCESS) << name;
    EXPECT_EQ(function, nullptr) << name;
    EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) << name;
  }
}

TEST(CudaEntry, NeedsNoPlaceForTheStatus) {
  void* function = nullptr;
  EXPECT_EQ(CU(cuGetProcAddress_v2)("cuInit", &function, 2000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(function, driver_symbol("cuInit"));
}

TEST(CudaEntry, RefusesVersionsAfterItsOwnAndUnknownFlags) {
  void* function = nullptr;
  int version = 0;
  ASSERT_EQ(CU(cuDriverGetVersion)(&version), CUDA_SUCCESS);
  const auto find = CU(cuGetProcAddress_v2);
  EXPECT_EQ(find("cuInit", &function, version, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(find("cuInit", &function, version + 10, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(find("cuInit", &function, 12000, 64, nullptr), CUDA_ERROR_INVALID_VALUE);
  if (is_real_driver()) return;  // driver 580 crashes
  EXPECT_EQ(find(nullptr, &function, 12000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(find("cuInit", nullptr, 12000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(CudaEntry, FindsTheSearchItselfInBothVariants) {
  void* old_one = nullptr;
  void* new_one = nullptr;
  const auto find = CU(cuGetProcAddress_v2);
  ASSERT_EQ(find("cuGetProcAddress", &old_one, 11080, 0, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(find("cuGetProcAddress", &new_one, 12000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(old_one, driver_symbol("cuGetProcAddress"));
  EXPECT_EQ(new_one, driver_symbol("cuGetProcAddress_v2"));
}

TEST(CudaEntry, NamesErrorsAndRefusesNumbersThatAreNone) {
  const char* text = nullptr;
  ASSERT_EQ(CU(cuGetErrorName)(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
  ASSERT_EQ(CU(cuGetErrorString)(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
  EXPECT_STREQ(text, "out of memory");
  EXPECT_EQ(CU(cuGetErrorName)(12345, &text), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(text, nullptr);
}

}  // namespace
}  // namespace regatta::standin
