// experimental/remote/internal/launch_argument_kinds.h: the kinds of arguments that have to do with
// code: images of modules, parameters of kernels, and the structures that hold them.
#pragma once

#include "experimental/remote/internal/array_argument_kinds.h"
#include "experimental/remote/internal/layout.h"

namespace regatta::remote {

// Size of a module's image by its own header or end; 0: the format is unknown.
std::size_t image_bytes(const void*& image);

struct Image : Plain {
  using Type = const void*;
  template <typename All>
  static CUresult prepare(const void* image, const All&) {
    return image == nullptr || image_bytes(image) > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
  }
  template <typename All>
  static void ask(MessageWriter& writer, const void* image, const All&) {
    const std::size_t bytes = image == nullptr ? 0 : image_bytes(image);
    writer.put(image != nullptr);
    if (image != nullptr) writer.put_block(image, bytes);
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    std::vector<std::byte> bytes;
    bool read(MessageReader& reader) {
      std::span<const std::byte> came;
      if (!reader.get(is_there)) return false;
      if (!is_there) return true;
      if (!reader.get_block(came)) return false;
      bytes.assign(came.begin(), came.end());
      bytes.push_back(std::byte{0});  // of a text
      return true;
    }
    // The driver would read beyond the received bytes if the header stated more.
    template <typename Slots>
    CUresult fit(HostProcess&, Slots&) {
      if (!is_there) return CUDA_SUCCESS;
      return holds_image(bytes) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_IMAGE;
    }
    const void* pass() { return is_there ? bytes.data() : nullptr; }
  };
};

// The values of a kernel's parameters, packed by its layout.
struct Packed {
  bool is_there = false;
  Buffer bytes;
  std::vector<void*> pointers;

  static void ask(MessageWriter& writer, void** values) {
    writer.put(values != nullptr);
    if (values == nullptr) return;
    const ParameterLayout& layout = found_layout();
    Buffer bytes(layout_bytes(layout));
    for (std::size_t i = 0; i < layout.size(); ++i)
      std::memcpy(bytes.data() + layout[i].offset, values[i], layout[i].bytes);
    writer.put_block(bytes.data(), bytes.size());
  }
  bool read(MessageReader& reader) {
    std::span<const std::byte> came;
    if (!reader.get(is_there)) return false;
    if (!is_there) return true;
    if (!reader.get_block(came)) return false;
    bytes.assign(came.begin(), came.end());
    return true;
  }
  CUresult fit(HostProcess& host, CUfunction function) {
    if (!is_there) return CUDA_SUCCESS;
    ParameterLayout layout;
    const CUresult found = host_layout(host, function, layout);
    if (found != CUDA_SUCCESS) return found;
    if (layout_bytes(layout) != bytes.size()) return CUDA_ERROR_INVALID_VALUE;
    for (const KernelParameter& one : layout)
      pointers.push_back(bytes.data() + one.offset);
    pointers.push_back(nullptr);
    return CUDA_SUCCESS;
  }
  void** pass() { return is_there ? pointers.data() : nullptr; }
};

template <std::size_t function>
struct Values : Plain {
  using Type = void**;
  template <typename All>
  static CUresult prepare(void** values, const All& all) {
    return values == nullptr ? CUDA_SUCCESS : find_layout(std::get<function>(all));
  }
  template <typename All>
  static void ask(MessageWriter& writer, void** values, const All&) {
    Packed::ask(writer, values);
  }
  struct Slot : Plain::Slot {
    Packed packed;
    bool read(MessageReader& reader) { return packed.read(reader); }
    template <typename Slots>
    CUresult fit(HostProcess& host, Slots& slots) {
      return packed.fit(host, std::get<function>(slots).value);
    }
    void** pass() { return packed.pass(); }
  };
};

// The alternative to parameter pointers: a list with one buffer of values.
struct Extra : Plain {
  using Type = void**;
  static constexpr std::uintptr_t kBuffer = 1;
  static constexpr std::uintptr_t kBytes = 2;
  static void ask(MessageWriter& writer, void** list) {
    const void* buffer = nullptr;
    std::size_t bytes = 0;
    writer.put(list != nullptr);
    if (list == nullptr) return;
    for (; *list != nullptr; list += 2) {
      const auto what = reinterpret_cast<std::uintptr_t>(*list);
      if (what == kBuffer) buffer = list[1];
      if (what == kBytes) bytes = *static_cast<const std::size_t*>(list[1]);
    }
    writer.put_block(buffer, buffer == nullptr ? 0 : bytes);
  }
  template <typename All>
  static void ask(MessageWriter& writer, void** list, const All&) {
    ask(writer, list);
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    Buffer bytes;
    std::size_t size = 0;
    void* list[5] = {};
    bool read(MessageReader& reader) {
      std::span<const std::byte> came;
      if (!reader.get(is_there)) return false;
      if (!is_there) return true;
      if (!reader.get_block(came)) return false;
      bytes.assign(came.begin(), came.end());
      return true;
    }
    void** pass() {
      if (!is_there) return nullptr;
      size = bytes.size();
      list[0] = reinterpret_cast<void*>(kBuffer);  // NOLINT(performance-no-int-to-ptr): as it is
      list[1] = bytes.data();
      list[2] = reinterpret_cast<void*>(kBytes);  // NOLINT(performance-no-int-to-ptr): as it is
      list[3] = &size;
      return list;
    }
  };
};

// Attributes of a launch: 72 bytes each, the first four are the attribute's number.
inline constexpr std::size_t kAttributeBytes = 72;
bool are_plain_attributes(const void* attributes, std::size_t count);

struct Config : Plain {
  using Type = const CUlaunchConfig*;
  template <typename All>
  static CUresult prepare(const CUlaunchConfig* config, const All&) {
    return config == nullptr || are_plain_attributes(config->attrs, config->numAttrs)
               ? CUDA_SUCCESS
               : kNotSupported;
  }
  template <typename All>
  static void ask(MessageWriter& writer, const CUlaunchConfig* config, const All&) {
    writer.put(config != nullptr);
    if (config == nullptr) return;
    writer.put(*config);
    writer.put_block(config->attrs, config->numAttrs * kAttributeBytes);
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    CUlaunchConfig value{};
    Buffer attributes;
    bool read(MessageReader& reader) {
      std::span<const std::byte> came;
      if (!reader.get(is_there)) return false;
      if (!is_there) return true;
      if (!reader.get(value) || !reader.get_block(came)) return false;
      attributes.assign(came.begin(), came.end());
      return attributes.size() == value.numAttrs * kAttributeBytes;
    }
    template <typename Slots>
    CUresult fit(HostProcess& host, Slots&) {
      if (!are_plain_attributes(attributes.data(), value.numAttrs)) return kNotSupported;
      value.attrs = reinterpret_cast<decltype(value.attrs)>(attributes.data());
      return handles_of(host).check(value.hStream);
    }
    const CUlaunchConfig* pass() { return is_there ? &value : nullptr; }
  };
};

struct KernelNode : Plain {
  using Type = const CUDA_KERNEL_NODE_PARAMS*;
  static CUfunction function(const CUDA_KERNEL_NODE_PARAMS& node) {
    return node.func != nullptr ? node.func : static_cast<CUfunction>(node.kern);
  }
  template <typename All>
  static CUresult prepare(const CUDA_KERNEL_NODE_PARAMS* node, const All&) {
    if (node == nullptr || node->kernelParams == nullptr) return CUDA_SUCCESS;
    return find_layout(function(*node));
  }
  template <typename All>
  static void ask(MessageWriter& writer, const CUDA_KERNEL_NODE_PARAMS* node, const All&) {
    writer.put(node != nullptr);
    if (node == nullptr) return;
    writer.put(*node);
    Packed::ask(writer, node->kernelParams);
    Extra::ask(writer, node->extra);
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    CUDA_KERNEL_NODE_PARAMS value{};
    Packed packed;
    Extra::Slot extra;
    bool read(MessageReader& reader) {
      if (!reader.get(is_there)) return false;
      return !is_there || (reader.get(value) && packed.read(reader) && extra.read(reader));
    }
    template <typename Slots>
    CUresult fit(HostProcess& host, Slots&) {
      CUresult known = handles_of(host).check(value.func);
      if (known == CUDA_SUCCESS) known = handles_of(host).check(static_cast<CUkernel>(value.kern));
      if (known == CUDA_SUCCESS) known = handles_of(host).check(value.ctx);
      if (known == CUDA_SUCCESS) known = packed.fit(host, function(value));
      value.kernelParams = packed.pass();
      value.extra = extra.pass();
      return known;
    }
    const CUDA_KERNEL_NODE_PARAMS* pass() { return is_there ? &value : nullptr; }
  };
};

// The result is its address.
struct AllocNode : Plain {
  using Type = CUDA_MEM_ALLOC_NODE_PARAMS*;
  static constexpr bool has_result = true;
  template <typename All>
  static void ask(MessageWriter& writer, const CUDA_MEM_ALLOC_NODE_PARAMS* node, const All&) {
    writer.put(node != nullptr);
    if (node == nullptr) return;
    writer.put(*node);
    const std::size_t count = node->accessDescs == nullptr ? 0 : node->accessDescCount;
    writer.put_block(node->accessDescs, count * sizeof(CUmemAccessDesc));
  }
  template <typename All>
  static bool take(MessageReader& reader, CUDA_MEM_ALLOC_NODE_PARAMS* node, const All&) {
    return node == nullptr || reader.get(node->dptr);
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    CUDA_MEM_ALLOC_NODE_PARAMS value{};
    std::vector<CUmemAccessDesc> access;
    bool read(MessageReader& reader) {
      std::span<const std::byte> came;
      if (!reader.get(is_there)) return false;
      if (!is_there) return true;
      if (!reader.get(value) || !reader.get_block(came)) return false;
      access.resize(came.size() / sizeof(CUmemAccessDesc));
      if (!access.empty())
        std::memcpy(access.data(), came.data(), access.size() * sizeof(CUmemAccessDesc));
      drop_pointers(value.poolProps);
      value.accessDescs = access.empty() ? nullptr : access.data();
      return came.size() / sizeof(CUmemAccessDesc) == value.accessDescCount;
    }
    CUDA_MEM_ALLOC_NODE_PARAMS* pass() { return is_there ? &value : nullptr; }
    template <typename Slots>
    void answer(Handles&, MessageWriter& writer, Slots&) {
      if (is_there) writer.put(value.dptr);
    }
  };
};

}  // namespace regatta::remote
