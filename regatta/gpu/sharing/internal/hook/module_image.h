// sharing/internal/hook/module_image.h: what a module asks of device memory, read from its image
// before the driver loads it. Images are PTX texts, ELF files of machine code (cubin), and fat
// binaries of both. An image is the program's, so nothing in it is taken for granted.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace regatta::sharing::hook {

struct ModuleMemory {
  std::uint64_t variables = 0;  // an upper bound, in the blocks that they may lie in
  std::uint64_t code = 0;       // likewise; of a PTX text, as many bytes as it has
  bool is_known = true;         // false: the module may take more, and nobody can say how much
  bool is_compiled = false;     // by the driver, from a text: its code may be more
};

// The image has as many bytes as the view.
ModuleMemory memory_of_image(std::string_view image);

// The image at an address, as long as its own headers say, or up to the zero that ends a text.
// None: it is of no known kind, or the headers name memory that is not there. A wrapper, as
// compilers leave it in programs, stands for the fat binary that it points to.
std::optional<std::string_view> image_at(const void* address);

}  // namespace regatta::sharing::hook
