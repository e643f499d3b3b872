// experimental/remote/internal/caller.h: a row of the table as a function of the client.
#pragma once

#include <utility>

#include "experimental/remote/internal/remote_session.h"
#include "experimental/remote/internal/table.h"

namespace regatta::remote {

template <CallNumber number, typename Arguments>
struct Caller;

template <CallNumber number, Mode mode, typename... K>
struct Caller<number, Kinds<mode, K...>> {
  static CUresult call(typename K::Type... values) {
    [[maybe_unused]] const std::tuple<typename K::Type...> all(values...);
    CUresult status = CUDA_SUCCESS;
    static_cast<void>((((status = K::prepare(values, all)) == CUDA_SUCCESS) && ...));
    if (status != CUDA_SUCCESS) return status;
    RemoteSession::Message message(static_cast<std::uint16_t>(number), mode == Mode::kWait);
    if (message.status() != CUDA_SUCCESS) return message.status();
    [[maybe_unused]] MessageWriter writer = message.writer();
    (K::ask(writer, values, all), ...);
    if (mode == Mode::kSend && !RemoteSession::instance().is_blocking()) return message.send();
    std::span<const std::byte> answer;
    status = message.exchange(answer);
    if constexpr (ends_functions(number)) forget_layouts();
    if (status != CUDA_SUCCESS) return status;
    [[maybe_unused]] MessageReader reader(answer);
    const bool is_good = (K::take(reader, values, all) && ...);
    return is_good ? CUDA_SUCCESS : message.lose();
  }
};

// remote::call<CallNumber::cuMemAlloc_v2>(&address, bytes)
template <CallNumber number, typename... T>
CUresult call(T... values) {
  return Caller<number, typename Row<number>::Arguments>::call(values...);
}

}  // namespace regatta::remote
