// tests/standin/codec.h: the encoder and the decoder of a device, for libnvidia-encode.so.1 and
// libnvcuvid.so.1 of the stand-in, which find them in a table that the driver exports. Each is one
// engine: pictures of all processes come one after the other.
#pragma once

#include <cstdint>

#include "regatta/gpu/device/abi/cuda_sharing.h"

namespace regatta::standin {

inline constexpr CUuuid kCodecTable = {
    {'r', 'e', 'g', 'a', 't', 't', 'a', ' ', 'c', 'o', 'd', 'e', 'c', 's', ' ', ' '}};

// At a speed that the device has no setting of: a full HD picture takes 1 ms.
inline constexpr std::uint64_t kPixelsPerMicrosecond = 2074;

struct CodecTable {
  std::size_t bytes;
  // A session of a context, which is the current one if it is null.
  CUresult (*open)(CUcontext, int is_encoder, std::uint64_t* session);
  CUresult (*close)(std::uint64_t session);
  // Gives a picture to the engine and waits until it is done.
  CUresult (*run)(std::uint64_t session, std::uint64_t pixels);
};
const CodecTable* codec_table();

}  // namespace regatta::standin
