// fuzz/node_protocol_fuzz.cc: any bytes as messages between agents and the controller: what is
// accepted is within its bounds, and is the same after it was written and read again.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <variant>

#include "regatta/base/core/result.h"
#include "regatta/platform/node_protocol/controller_message.h"
#include "regatta/platform/node_protocol/node_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta::node_protocol;  // NOLINT(google-build-using-namespace): a program
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto message = decode_node_message(bytes)) {
    const std::string written = encode(*message);
    const auto again = decode_node_message(written);
    REGATTA_CHECK(again && encode(*again) == written);
    if (const auto* hello = std::get_if<NodeHello>(&*message))
      REGATTA_CHECK(check_node_name(hello->facts.name).has_value());
  }
  if (const auto message = decode_controller_message(bytes)) {
    const std::string written = encode(*message);
    const auto again = decode_controller_message(written);
    REGATTA_CHECK(again && encode(*again) == written);
    if (const auto* orders = std::get_if<NodeOrders>(&*message))
      for (const auto& order : orders->orders)
        REGATTA_CHECK(order.first_rank + order.ranks <= order.world_size);
  }
  return 0;
}
