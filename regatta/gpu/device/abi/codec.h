// device/abi/codec.h: what we use of the binary interfaces of the video encoder (NVENCODE API 12)
// and decoder (NVDECODE API). Names, values and layouts are theirs, as far as they are read here.
#pragma once

#include <cstddef>
#include <cstdint>

#include "regatta/gpu/device/abi/cuda_sharing.h"

// NOLINTBEGIN(readability-identifier-naming): the names are the libraries'
extern "C" {
using CUvideodecoder = void*;
struct CUVIDDECODECREATEINFO {  // its beginning
  unsigned long ulWidth;
  unsigned long ulHeight;
};
struct CUVIDPICPARAMS {  // its beginning
  int PicWidthInMbs;
  int FrameHeightInMbs;
};
CUresult cuvidCreateDecoder(CUvideodecoder*, CUVIDDECODECREATEINFO*);
CUresult cuvidDestroyDecoder(CUvideodecoder);
CUresult cuvidDecodePicture(CUvideodecoder, CUVIDPICPARAMS*);

using NVENCSTATUS = int;
inline constexpr NVENCSTATUS NV_ENC_SUCCESS = 0;
inline constexpr NVENCSTATUS NV_ENC_ERR_NO_ENCODE_DEVICE = 1;
inline constexpr NVENCSTATUS NV_ENC_ERR_INVALID_DEVICE = 4;
inline constexpr NVENCSTATUS NV_ENC_ERR_INVALID_PTR = 6;
inline constexpr NVENCSTATUS NV_ENC_ERR_INVALID_PARAM = 8;
inline constexpr NVENCSTATUS NV_ENC_ERR_OUT_OF_MEMORY = 10;
inline constexpr NVENCSTATUS NV_ENC_ERR_ENCODER_NOT_INITIALIZED = 11;
inline constexpr NVENCSTATUS NV_ENC_ERR_UNIMPLEMENTED = 14;
inline constexpr NVENCSTATUS NV_ENC_ERR_GENERIC = 20;
inline constexpr std::uint32_t NV_ENC_DEVICE_TYPE_CUDA = 1;
inline constexpr std::uint32_t NV_ENC_PIC_FLAG_EOS = 8;

struct NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS {  // its beginning
  std::uint32_t version;
  std::uint32_t deviceType;
  void* device;
};
struct NV_ENC_INITIALIZE_PARAMS {  // its beginning
  std::uint32_t version;
  unsigned char encodeGUID[16];
  unsigned char presetGUID[16];
  std::uint32_t encodeWidth;
  std::uint32_t encodeHeight;
};
static_assert(offsetof(NV_ENC_INITIALIZE_PARAMS, encodeWidth) == 36);
struct NV_ENC_PIC_PARAMS {  // its beginning
  std::uint32_t version;
  std::uint32_t inputWidth;
  std::uint32_t inputHeight;
  std::uint32_t inputPitch;
  std::uint32_t encodePicFlags;
};
struct NV_ENCODE_API_FUNCTION_LIST {
  std::uint32_t version;
  std::uint32_t reserved;
  void* functions[43];  // in the order of the header
  void* reserved2[275];
};
// Places in `functions`.
inline constexpr int kNvEncOpenEncodeSession = 0;  // (device, kind of device, encoder); the old one
inline constexpr int kNvEncInitializeEncoder = 11;
inline constexpr int kNvEncEncodePicture = 16;
inline constexpr int kNvEncDestroyEncoder = 27;
inline constexpr int kNvEncOpenEncodeSessionEx = 29;

NVENCSTATUS NvEncodeAPIGetMaxSupportedVersion(std::uint32_t* version);
NVENCSTATUS NvEncodeAPICreateInstance(NV_ENCODE_API_FUNCTION_LIST*);
}
// NOLINTEND(readability-identifier-naming)
