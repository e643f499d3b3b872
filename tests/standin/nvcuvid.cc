// libnvcuvid.so.1 of the stand-in: decoders that take the device's decoding engine for the time
// that their pictures need. No picture comes of it.
#include "regatta/gpu/device/abi/codec.h"
#include "tests/standin/codec_library.h"

using namespace regatta::standin;

namespace {

struct Decoder {
  std::uint64_t session = 0;
};

constexpr std::uint64_t kBlockPixels = 16 * 16;

}  // namespace

// NOLINTBEGIN(readability-identifier-naming): the names are the library's
extern "C" {

CUresult cuvidCreateDecoder(CUvideodecoder* decoder, CUVIDDECODECREATEINFO* wanted) {
  if (decoder == nullptr || wanted == nullptr || wanted->ulWidth == 0 || wanted->ulHeight == 0)
    return CUDA_ERROR_INVALID_VALUE;
  if (find_codecs() == nullptr) return CUDA_ERROR_NOT_INITIALIZED;
  Decoder made;
  const CUresult opened = find_codecs()->open(nullptr, 0, &made.session);
  if (opened == CUDA_SUCCESS) *decoder = new Decoder(made);
  return opened;
}

CUresult cuvidDestroyDecoder(CUvideodecoder decoder) {
  if (decoder == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  auto* const own = static_cast<Decoder*>(decoder);
  const CUresult closed = find_codecs()->close(own->session);
  delete own;
  return closed;
}

CUresult cuvidDecodePicture(CUvideodecoder decoder, CUVIDPICPARAMS* picture) {
  if (decoder == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  if (picture == nullptr || picture->PicWidthInMbs <= 0 || picture->FrameHeightInMbs <= 0)
    return CUDA_ERROR_INVALID_VALUE;
  const auto blocks = static_cast<std::uint64_t>(picture->PicWidthInMbs) *
                      static_cast<std::uint64_t>(picture->FrameHeightInMbs);
  return find_codecs()->run(static_cast<Decoder*>(decoder)->session, blocks * kBlockPixels);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
