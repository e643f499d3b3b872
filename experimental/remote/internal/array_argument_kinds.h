// experimental/remote/internal/array_argument_kinds.h: kinds of arguments that are arrays, whose
// length is another argument.
#pragma once

#include "experimental/remote/internal/argument_kinds.h"

namespace regatta::remote {

// Buffer for a text, with argument `length` bytes.
template <std::size_t length>
struct OutBytes : Plain {
  using Type = char*;
  static constexpr bool has_result = true;
  template <typename All>
  static void ask(MessageWriter& writer, char* bytes, const All&) {
    writer.put(bytes != nullptr);
  }
  template <typename All>
  static bool take(MessageReader& reader, char* into, const All& all) {
    std::span<const std::byte> bytes;
    if (into == nullptr) return true;
    if (!reader.get_block(bytes)) return false;
    const auto room = std::max<std::int64_t>(0, std::get<length>(all));
    std::memcpy(into, bytes.data(), std::min(bytes.size(), static_cast<std::size_t>(room)));
    return true;
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    std::vector<char> bytes;
    bool read(MessageReader& reader) { return reader.get(is_there); }
    template <typename Slots>
    CUresult fit(HostProcess&, Slots& slots) {
      const auto wanted = static_cast<std::int64_t>(std::get<length>(slots).value);
      if (wanted > static_cast<std::int64_t>(kMostElements)) return CUDA_ERROR_INVALID_VALUE;
      bytes.resize(static_cast<std::size_t>(std::max<std::int64_t>(wanted, 0)));
      return CUDA_SUCCESS;
    }
    char* pass() { return is_there ? bytes.data() : nullptr; }
    template <typename Slots>
    void answer(Handles&, MessageWriter& writer, Slots&) {
      if (is_there) writer.put_block(bytes.data(), bytes.size());
    }
  };
};

// Argument `count` elements. Pointer is const T* or T*.
template <typename T, std::size_t count, typename Pointer = const T*>
struct Many : Plain {
  using Type = Pointer;
  template <typename All>
  static void ask(MessageWriter& writer, Pointer first, const All& all) {
    const auto elements = static_cast<std::size_t>(std::get<count>(all));
    writer.put(first != nullptr);
    if (first != nullptr) writer.put_block(first, elements * sizeof(T));
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    std::vector<T> elements;
    bool read(MessageReader& reader) {
      std::span<const std::byte> bytes;
      if (!reader.get(is_there)) return false;
      if (!is_there) return true;
      if (!reader.get_block(bytes) || bytes.size() % sizeof(T) != 0) return false;
      elements.resize(bytes.size() / sizeof(T));
      if (!bytes.empty()) std::memcpy(elements.data(), bytes.data(), bytes.size());
      return true;
    }
    template <typename Slots>
    CUresult fit(HostProcess& host, Slots& slots) {
      if (!is_there) return CUDA_SUCCESS;
      const auto stated = static_cast<std::uint64_t>(std::get<count>(slots).value);
      if (stated != elements.size()) return CUDA_ERROR_INVALID_VALUE;
      if constexpr (std::is_pointer_v<T>)
        for (const T element : elements)
          if (const CUresult known = handles_of(host).template check<T>(element);
              known != CUDA_SUCCESS)
            return known;
      return CUDA_SUCCESS;
    }
    Pointer pass() { return is_there ? reinterpret_cast<Pointer>(elements.data()) : nullptr; }
  };
};

// Buffer for argument `count` elements; `count` is a value, or a pointer that then holds their
// number.
template <std::size_t count>
using ManyNodes = Many<CUgraphNode, count, CUgraphNode*>;
template <std::size_t count>
using Words = Many<std::uint64_t, count, void**>;

// As CUgraphEdgeData.
struct EdgeData {
  unsigned char bytes[8];
};

// Options that are plain numbers; the others point into the client.
constexpr bool is_jit_number(int option) {
  return option == 0 || option == 1 || (option >= 7 && option <= 15);
}
constexpr bool is_library_number(int option) {
  return option == 1;  // CU_LIBRARY_BINARY_IS_PRESERVED
}
template <std::size_t count, auto is_number>
struct Options : Many<int, count, int*> {
  using Base = Many<int, count, int*>;
  struct Slot : Base::Slot {
    template <typename Slots>
    CUresult fit(HostProcess& host, Slots& slots) {
      if (!std::ranges::all_of(this->elements, is_number)) return kNotSupported;
      return Base::Slot::fit(host, slots);
    }
  };
};

template <typename Count>
std::size_t room(Count count) {
  if constexpr (std::is_pointer_v<Count>)
    return *count;
  else
    return count;
}
template <typename T, std::size_t count>
struct OutMany : Plain {
  using Type = T*;
  static constexpr bool has_result = true;
  template <typename All>
  static void ask(MessageWriter& writer, T* first, const All&) {
    writer.put(first != nullptr);
  }
  template <typename All>
  static bool take(MessageReader& reader, T* first, const All& all) {
    std::span<const std::byte> bytes;
    if (first == nullptr) return true;
    if (!reader.get_block(bytes) || bytes.size() / sizeof(T) > room(std::get<count>(all)))
      return false;
    if (!bytes.empty()) std::memcpy(first, bytes.data(), bytes.size());
    return true;
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    std::vector<T> elements;
    bool read(MessageReader& reader) { return reader.get(is_there); }
    template <typename Slots>
    CUresult fit(HostProcess&, Slots& slots) {
      const auto room = static_cast<std::uint64_t>(std::get<count>(slots).value);
      if (is_there && room > kMostElements) return CUDA_ERROR_INVALID_VALUE;
      elements.resize(is_there ? static_cast<std::size_t>(room) : 0);
      return CUDA_SUCCESS;
    }
    T* pass() { return is_there ? elements.data() : nullptr; }
    template <typename Slots>
    void answer(Handles& handles, MessageWriter& writer, Slots& slots) {
      if (!is_there) return;
      const auto given = static_cast<std::uint64_t>(std::get<count>(slots).value);
      elements.resize(std::min<std::size_t>(elements.size(), given));
      for (const T element : elements)
        handles.add<T>(element);
      writer.put_block(elements.data(), elements.size() * sizeof(T));
    }
  };
};

// A list of the driver's with argument `count` elements afterwards. The client's copy lives until
// the next call of the thread.
template <typename T, std::size_t count>
struct OutList : Plain {
  using Type = const T**;
  static constexpr bool has_result = true;
  template <typename All>
  static void ask(MessageWriter& writer, const T** list, const All&) {
    writer.put(list != nullptr);
  }
  template <typename All>
  static bool take(MessageReader& reader, const T** list, const All&) {
    static thread_local std::vector<T> elements;
    std::span<const std::byte> bytes;
    if (list == nullptr) return true;
    if (!reader.get_block(bytes)) return false;
    elements.resize(bytes.size() / sizeof(T));
    if (!elements.empty()) std::memcpy(elements.data(), bytes.data(), elements.size() * sizeof(T));
    *list = elements.empty() ? nullptr : elements.data();
    return true;
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    const T* list = nullptr;
    bool read(MessageReader& reader) { return reader.get(is_there); }
    const T** pass() { return is_there ? &list : nullptr; }
    template <typename Slots>
    void answer(Handles& handles, MessageWriter& writer, Slots& slots) {
      if (!is_there) return;
      const std::size_t elements = list == nullptr ? 0 : std::get<count>(slots).value;
      if constexpr (std::is_pointer_v<T>)
        for (std::size_t i = 0; i < elements; ++i)
          handles.add<T>(list[i]);
      writer.put_block(list, elements * sizeof(T));
    }
  };
};

}  // namespace regatta::remote
