// experimental/remote/internal/bytes.h: writes and reads the values of messages. Numbers as they
// lie in memory: both ends are little-endian 64-bit machines.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace regatta::remote {

static_assert(std::endian::native == std::endian::little && sizeof(void*) == 8);

using Buffer = std::vector<std::byte>;

class MessageWriter {
 public:
  explicit MessageWriter(Buffer& out) : out_(out) {}

  template <typename T>
  void put(const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    put_bytes(&value, sizeof value);
  }
  void put_bytes(const void* from, std::size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(from);
    out_.insert(out_.end(), first, first + bytes);
  }
  // Preceded by its length.
  void put_block(const void* from, std::size_t bytes) {
    put(static_cast<std::uint64_t>(bytes));
    if (bytes > 0) put_bytes(from, bytes);
  }

 private:
  Buffer& out_;
};

// Fails for ever once a message is too short.
class MessageReader {
 public:
  explicit MessageReader(std::span<const std::byte> rest) : rest_(rest) {}

  template <typename T>
  bool get(T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::span<const std::byte> bytes;
    if (!get_bytes(sizeof value, bytes)) return false;
    std::memcpy(static_cast<void*>(&value), bytes.data(), sizeof value);
    return true;
  }
  bool get(bool& value) {
    std::uint8_t number = 0;
    is_good_ = get(number) && number <= 1;
    value = number == 1;
    return is_good_;
  }
  // A view into the message.
  bool get_bytes(std::uint64_t count, std::span<const std::byte>& bytes) {
    is_good_ = is_good_ && count <= rest_.size();
    if (!is_good_) return false;
    bytes = rest_.first(static_cast<std::size_t>(count));
    rest_ = rest_.subspan(static_cast<std::size_t>(count));
    return true;
  }
  bool get_block(std::span<const std::byte>& bytes) {
    std::uint64_t count = 0;
    return get(count) && get_bytes(count, bytes);
  }
  bool is_at_end() const { return is_good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool is_good_ = true;
};

}  // namespace regatta::remote
