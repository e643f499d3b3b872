// libnvidia-encode.so.1 of the stand-in: encoders that take the device's encoding engine for the
// time that their pictures need. No stream comes of it.
#include "regatta/gpu/device/abi/codec.h"
#include "tests/standin/codec_library.h"

using namespace regatta::standin;

namespace {

constexpr std::uint32_t kVersion = (12U << 4U) | 2U;

struct Encoder {
  std::uint64_t session = 0;
  std::uint64_t pixels = 0;  // of a picture; 0: not initialized
};

NVENCSTATUS open_session(void* device, std::uint32_t kind, void** encoder) {
  if (encoder == nullptr) return NV_ENC_ERR_INVALID_PTR;
  if (kind != NV_ENC_DEVICE_TYPE_CUDA) return NV_ENC_ERR_INVALID_DEVICE;
  if (find_codecs() == nullptr) return NV_ENC_ERR_NO_ENCODE_DEVICE;
  Encoder made;
  const auto context = static_cast<CUcontext>(device);
  if (find_codecs()->open(context, 1, &made.session) != CUDA_SUCCESS)
    return NV_ENC_ERR_INVALID_DEVICE;
  *encoder = new Encoder(made);
  return NV_ENC_SUCCESS;
}

NVENCSTATUS open_session_ex(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS* wanted, void** encoder) {
  if (wanted == nullptr) return NV_ENC_ERR_INVALID_PTR;
  return open_session(wanted->device, wanted->deviceType, encoder);
}

NVENCSTATUS initialize(void* encoder, NV_ENC_INITIALIZE_PARAMS* wanted) {
  if (encoder == nullptr || wanted == nullptr) return NV_ENC_ERR_INVALID_PTR;
  if (wanted->encodeWidth == 0 || wanted->encodeHeight == 0) return NV_ENC_ERR_INVALID_PARAM;
  static_cast<Encoder*>(encoder)->pixels =
      std::uint64_t{wanted->encodeWidth} * wanted->encodeHeight;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS encode(void* encoder, NV_ENC_PIC_PARAMS* picture) {
  if (encoder == nullptr || picture == nullptr) return NV_ENC_ERR_INVALID_PTR;
  const Encoder& own = *static_cast<Encoder*>(encoder);
  if (own.pixels == 0) return NV_ENC_ERR_ENCODER_NOT_INITIALIZED;
  if ((picture->encodePicFlags & NV_ENC_PIC_FLAG_EOS) != 0) return NV_ENC_SUCCESS;
  return find_codecs()->run(own.session, own.pixels) == CUDA_SUCCESS ? NV_ENC_SUCCESS
                                                                     : NV_ENC_ERR_GENERIC;
}

NVENCSTATUS destroy(void* encoder) {
  if (encoder == nullptr) return NV_ENC_ERR_INVALID_PTR;
  auto* const own = static_cast<Encoder*>(encoder);
  find_codecs()->close(own->session);
  delete own;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS refuse() {
  return NV_ENC_ERR_UNIMPLEMENTED;
}

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the library's
extern "C" {

NVENCSTATUS NvEncodeAPIGetMaxSupportedVersion(std::uint32_t* version) {
  if (version == nullptr) return NV_ENC_ERR_INVALID_PTR;
  *version = kVersion;
  return NV_ENC_SUCCESS;
}

NVENCSTATUS NvEncodeAPICreateInstance(NV_ENCODE_API_FUNCTION_LIST* list) {
  if (list == nullptr) return NV_ENC_ERR_INVALID_PTR;
  for (void*& function : list->functions)
    function = reinterpret_cast<void*>(&refuse);
  list->functions[kNvEncOpenEncodeSession] = reinterpret_cast<void*>(&open_session);
  list->functions[kNvEncOpenEncodeSessionEx] = reinterpret_cast<void*>(&open_session_ex);
  list->functions[kNvEncInitializeEncoder] = reinterpret_cast<void*>(&initialize);
  list->functions[kNvEncEncodePicture] = reinterpret_cast<void*>(&encode);
  list->functions[kNvEncDestroyEncoder] = reinterpret_cast<void*>(&destroy);
  return NV_ENC_SUCCESS;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
