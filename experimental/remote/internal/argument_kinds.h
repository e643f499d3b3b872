// experimental/remote/internal/argument_kinds.h: the kinds of arguments that calls.inc has. A kind
// says the argument's C type, and what of it travels:
//   ask()         client: what goes to the server
//   take()        client: results into the program's memory, after success
//   Slot::read()  server: what came; false: the message is broken
//   Slot::fit()   server: when all came: handles are known, lengths agree, there is room for
//   results Slot::pass()  server: the argument of the driver's function Slot::answer() server: what
//   goes back after success
// `all` are the arguments in order, `slots` their slots. A pointer may be null where the driver
// allows that: a byte says so.
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "experimental/remote/internal/bytes.h"
#include "experimental/remote/internal/frames.h"
#include "experimental/remote/internal/handles.h"

namespace regatta::remote {

class HostProcess;

// Defaults of a kind: no result, and no second check on the server.
struct Plain {
  template <typename T, typename All>
  static CUresult prepare(T, const All&) {
    return CUDA_SUCCESS;
  }
  template <typename T, typename All>
  static bool take(MessageReader&, T, const All&) {
    return true;
  }
  struct Slot {
    template <typename Slots>
    CUresult fit(HostProcess&, Slots&) {
      return CUDA_SUCCESS;
    }
    template <typename Slots>
    void answer(Handles&, MessageWriter&, Slots&) {}
  };
  static constexpr bool has_result = false;
};

Handles& handles_of(HostProcess& host);

// A number or a handle, by value. A handle has to be one that this process was given.
template <typename T, bool is_handle = std::is_pointer_v<T>>
struct In : Plain {
  using Type = T;
  template <typename All>
  static void ask(MessageWriter& writer, T value, const All&) {
    writer.put(value);
  }
  struct Slot : Plain::Slot {
    T value{};
    bool read(MessageReader& reader) { return reader.get(value); }
    template <typename Slots>
    CUresult fit(HostProcess& host, Slots&) {
      if constexpr (is_handle)
        return handles_of(host).template check<T>(value);
      else
        return CUDA_SUCCESS;
    }
    T pass() { return value; }
  };
};
using Key = In<CUmemGenericAllocationHandle, true>;

// A result.
template <typename T, bool is_handle = std::is_pointer_v<T>>
struct Out : Plain {
  using Type = T*;
  static constexpr bool has_result = true;
  template <typename All>
  static void ask(MessageWriter& writer, T* value, const All&) {
    writer.put(value != nullptr);
  }
  template <typename All>
  static bool take(MessageReader& reader, T* value, const All&) {
    return value == nullptr || reader.get(*value);
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    T value{};
    bool read(MessageReader& reader) { return reader.get(is_there); }
    T* pass() { return is_there ? &value : nullptr; }
    template <typename Slots>
    void answer(Handles& handles, MessageWriter& writer, Slots&) {
      if (!is_there) return;
      if constexpr (is_handle) handles.add<T>(value);
      writer.put(value);
    }
  };
};
using OutKey = Out<CUmemGenericAllocationHandle, true>;

// Goes there and comes back.
template <typename T>
struct Change : Out<T, false> {
  template <typename All>
  static void ask(MessageWriter& writer, T* value, const All&) {
    writer.put(value != nullptr);
    if (value != nullptr) writer.put(*value);
  }
  struct Slot : Out<T, false>::Slot {
    bool read(MessageReader& reader) {
      return reader.get(this->is_there) && (!this->is_there || reader.get(this->value));
    }
  };
};

// Pointers within structures are the server's own affair.
template <typename T>
inline void drop_pointers(T&) {}
inline void drop_pointers(CUmemAllocationProp& value) {
  value.win32HandleMetaData = nullptr;
}
inline void drop_pointers(CUmemPoolProps& value) {
  value.win32SecurityAttributes = nullptr;
}

template <typename T>
struct Const : Plain {
  using Type = const T*;
  template <typename All>
  static void ask(MessageWriter& writer, const T* value, const All&) {
    writer.put(value != nullptr);
    if (value != nullptr) writer.put(*value);
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    T value{};
    bool read(MessageReader& reader) {
      if (!reader.get(is_there) || (is_there && !reader.get(value))) return false;
      drop_pointers(value);
      return true;
    }
    const T* pass() { return is_there ? &value : nullptr; }
  };
};

struct Text : Plain {
  using Type = const char*;
  template <typename All>
  static void ask(MessageWriter& writer, const char* text, const All&) {
    writer.put(text != nullptr);
    if (text != nullptr) writer.put_block(text, std::strlen(text));
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    std::string text;
    bool read(MessageReader& reader) {
      std::span<const std::byte> bytes;
      if (!reader.get(is_there)) return false;
      if (!is_there) return true;
      if (!reader.get_block(bytes)) return false;
      text.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return true;
    }
    const char* pass() { return is_there ? text.c_str() : nullptr; }
  };
};

// A text of the driver's, which lives as long as the program.
const char* keep_text(std::string_view text);
struct OutText : Plain {
  using Type = const char**;
  static constexpr bool has_result = true;
  // Null where the call fails.
  template <typename All>
  static CUresult prepare(const char** text, const All&) {
    if (text != nullptr) *text = nullptr;
    return CUDA_SUCCESS;
  }
  template <typename All>
  static void ask(MessageWriter& writer, const char** text, const All&) {
    writer.put(text != nullptr);
  }
  template <typename All>
  static bool take(MessageReader& reader, const char** text, const All&) {
    bool is_text = false;
    std::span<const std::byte> bytes;
    if (text == nullptr) return true;
    if (!reader.get(is_text) || !reader.get_block(bytes)) return false;
    *text =
        is_text ? keep_text({reinterpret_cast<const char*>(bytes.data()), bytes.size()}) : nullptr;
    return true;
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    const char* text = nullptr;
    bool read(MessageReader& reader) { return reader.get(is_there); }
    const char** pass() { return is_there ? &text : nullptr; }
    template <typename Slots>
    void answer(Handles&, MessageWriter& writer, Slots&) {
      if (!is_there) return;
      writer.put(text != nullptr);
      writer.put_block(text, text == nullptr ? 0 : std::strlen(text));
    }
  };
};

// A pointer that has to be null.
struct Nothing : Plain {
  using Type = void*;
  template <typename All>
  static CUresult prepare(const void* value, const All&) {
    return value == nullptr ? CUDA_SUCCESS : kNotSupported;
  }
  template <typename All>
  static void ask(MessageWriter&, const void*, const All&) {}
  struct Slot : Plain::Slot {
    bool read(MessageReader&) { return true; }
    void* pass() { return nullptr; }
  };
};

// The value of an attribute: argument `attribute` says which, bytes_of() how long it is; 0:
// unknown.
template <std::size_t attribute, auto bytes_of, bool is_given = false>
struct Value : Plain {
  using Type = void*;
  static constexpr bool has_result = !is_given;
  template <typename All>
  static CUresult prepare(void*, const All& all) {
    return bytes_of(std::get<attribute>(all)) == 0 ? kNotSupported : CUDA_SUCCESS;
  }
  template <typename All>
  static void ask(MessageWriter& writer, void* value, const All& all) {
    writer.put(value != nullptr);
    std::uint64_t bytes = 0;
    if (is_given && value != nullptr)
      std::memcpy(&bytes, value, bytes_of(std::get<attribute>(all)));
    writer.put(bytes);
  }
  template <typename All>
  static bool take(MessageReader& reader, void* value, const All& all) {
    std::uint64_t bytes = 0;
    if (is_given || value == nullptr) return true;
    if (!reader.get(bytes)) return false;
    std::memcpy(value, &bytes, bytes_of(std::get<attribute>(all)));
    return true;
  }
  struct Slot : Plain::Slot {
    bool is_there = false;
    std::uint64_t value[8] = {};  // room for more than is known
    bool read(MessageReader& reader) { return reader.get(is_there) && reader.get(value[0]); }
    template <typename Slots>
    CUresult fit(HostProcess&, Slots& slots) {
      return bytes_of(std::get<attribute>(slots).value) == 0 ? kNotSupported : CUDA_SUCCESS;
    }
    void* pass() { return is_there ? value : nullptr; }
    template <typename Slots>
    void answer(Handles&, MessageWriter& writer, Slots&) {
      if (!is_given && is_there) writer.put(value[0]);
    }
  };
};
constexpr std::size_t pool_value_bytes(int attribute) {
  return attribute >= 1 && attribute <= 3 ? sizeof(int)
         : attribute <= 8                 ? sizeof(std::uint64_t)
                                          : 0;
}
constexpr std::size_t graph_memory_bytes(int attribute) {
  return attribute >= 0 && attribute <= 3 ? sizeof(std::uint64_t) : 0;
}
// All other attributes are refused: they hold pointers of the server's process, or more than a
// number.
constexpr std::size_t pointer_value_bytes(int attribute) {
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case 6:  // SYNC_MEMOPS
    case 8:  // IS_MANAGED
      return sizeof(int);
    case 3:   // DEVICE_POINTER
    case 7:   // BUFFER_ID
    case 11:  // RANGE_START_ADDR
    case 12:  // RANGE_SIZE
      return sizeof(std::uint64_t);
    default:
      return 0;
  }
}
template <std::size_t attribute, auto bytes_of>
using Given = Value<attribute, bytes_of, true>;

}  // namespace regatta::remote
