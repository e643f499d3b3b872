// core/bytes.h: values as the bytes that travel, in the order of this machine.
#pragma once

#include <cstddef>
#include <cstring>

namespace regatta {

template <typename T>
void put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <typename T>
T get(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

}  // namespace regatta
