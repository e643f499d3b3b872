// tests/standin/module.h: modules, which are PTX texts, their kernels, and the libraries that are
// modules of every context that asks. All of it under the lock.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tests/standin/process.h"

namespace regatta::standin {

struct Parameter {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

// A variable of a module, in device memory.
struct Global {
  std::uint64_t bytes = 0;
  CUdeviceptr address = 0;
};

// The kernels and variables of a PTX text, as far as they count here.
std::map<std::string, CUfunc_st> kernels_of(std::string_view text);
std::map<std::string, Global> globals_of(std::string_view text);
// As 75 of ".target sm_75".
int target_of(std::string_view text);
// With its version first: a driver takes others for no image at all.
bool is_ptx(std::string_view text);
// With the two directives that every text has to begin with.
bool begins_as_ptx(std::string_view text);

// The PTX text that an image is, or holds: fat binaries too.
CUresult text_of_image(const void* image, std::string* text);
CUresult load_module(CUcontext context, std::string_view text, CUmodule* module);
void unload_module(CUmodule module);
bool is_module(CUmodule module);
// Those of a context that ends, also of libraries.
void drop_modules(CUcontext context);
void drop_library_modules(CUcontext context);
// The function that a handle means, which may be a library's kernel: then that of the current
// context.
CUresult find_function(CUfunction handle, CUfunction* function);
CUresult read_attribute(const CUfunc_st& function, int attribute, int* value);
CUresult write_attribute(CUfunc_st& function, int attribute, int value);
CUresult find_parameter(const CUfunc_st& function, std::size_t index, std::size_t* offset,
                        std::size_t* bytes);

bool is_kernel(CUkernel kernel);
// The kernel in the module of its library for this context.
CUresult function_of(CUkernel kernel, CUcontext context, CUfunction* function);

}  // namespace regatta::standin

// NOLINTBEGIN(readability-identifier-naming): the names are the driver's
struct CUfunc_st {
  std::string name;
  CUmodule module = nullptr;
  std::optional<regatta::standin::Time> duration;  // none: the first parameter says it
  CUresult fails = CUDA_SUCCESS;
  std::vector<regatta::standin::Parameter> parameters;
  int max_dynamic_shared = 48 << 10;
  int carveout = -1;
};
struct CUmod_st {
  CUcontext context = nullptr;
  int target = 0;  // of the PTX
  std::map<std::string, CUfunc_st> functions;
  std::map<std::string, regatta::standin::Global> globals;
};
struct CUkern_st {
  CUlibrary library = nullptr;
  std::string name;
};
struct CUlib_st {
  std::string text;
  std::map<std::string, CUkern_st> kernels;
  std::map<CUcontext, CUmodule> modules;
};
// NOLINTEND(readability-identifier-naming)
