// Encodes and decodes, and reports how many sessions it gets.
#include <cstdio>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "regatta/gpu/device/abi/codec.h"
#include "tests/hook/program.h"
#include "tests/hook/program_rate.h"

namespace regatta::hook_test {
namespace {

template <typename Function>
Function* find(const char* library, const char* name) {
  void* const opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  return opened == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(opened, name));
}

struct Encoder {
  NV_ENCODE_API_FUNCTION_LIST list{};

  bool find_functions() {
    auto* const create = find<decltype(NvEncodeAPICreateInstance)>("libnvidia-encode.so.1",
                                                                   "NvEncodeAPICreateInstance");
    return create != nullptr && create(&list) == NV_ENC_SUCCESS;
  }
  NVENCSTATUS open(CUcontext context, void** encoder) const {
    NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS wanted{.deviceType = NV_ENC_DEVICE_TYPE_CUDA,
                                                .device = context};
    return reinterpret_cast<NVENCSTATUS (*)(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS*, void**)>(
        list.functions[kNvEncOpenEncodeSessionEx])(&wanted, encoder);
  }
  // By the call from before there was the one above.
  NVENCSTATUS open_as_of_old(CUcontext context, void** encoder) const {
    return reinterpret_cast<NVENCSTATUS (*)(void*, std::uint32_t, void**)>(
        list.functions[kNvEncOpenEncodeSession])(context, NV_ENC_DEVICE_TYPE_CUDA, encoder);
  }
  NVENCSTATUS start(void* encoder) const {
    NV_ENC_INITIALIZE_PARAMS size{};
    size.encodeWidth = 1920;
    size.encodeHeight = 1080;
    return reinterpret_cast<NVENCSTATUS (*)(void*, NV_ENC_INITIALIZE_PARAMS*)>(
        list.functions[kNvEncInitializeEncoder])(encoder, &size);
  }
  NVENCSTATUS encode(void* encoder) const {
    NV_ENC_PIC_PARAMS picture{};
    return reinterpret_cast<NVENCSTATUS (*)(void*, NV_ENC_PIC_PARAMS*)>(
        list.functions[kNvEncEncodePicture])(encoder, &picture);
  }
  NVENCSTATUS close(void* encoder) const {
    return reinterpret_cast<NVENCSTATUS (*)(void*)>(list.functions[kNvEncDestroyEncoder])(encoder);
  }
};

struct Decoder {
  decltype(cuvidCreateDecoder)* create =
      find<decltype(cuvidCreateDecoder)>("libnvcuvid.so.1", "cuvidCreateDecoder");
  decltype(cuvidDecodePicture)* decode =
      find<decltype(cuvidDecodePicture)>("libnvcuvid.so.1", "cuvidDecodePicture");
  decltype(cuvidDestroyDecoder)* destroy =
      find<decltype(cuvidDestroyDecoder)>("libnvcuvid.so.1", "cuvidDestroyDecoder");
  CUresult open(CUvideodecoder* decoder) const {
    CUVIDDECODECREATEINFO wanted{1920, 1088};
    return create(decoder, &wanted);
  }
};

bool open_context(CUcontext* context) {
  return CU(cuInit)(0) == CUDA_SUCCESS && CU(cuCtxCreate_v2)(context, 0, 0) == CUDA_SUCCESS;
}

}  // namespace

int code_for(int seconds, bool is_encoder) {
  CUcontext context = nullptr;
  if (!open_context(&context)) return 1;
  if (is_encoder) {
    Encoder encoders;
    void* encoder = nullptr;
    if (!encoders.find_functions() || encoders.open(context, &encoder) != NV_ENC_SUCCESS ||
        encoders.start(encoder) != NV_ENC_SUCCESS)
      return 1;
    return run_for(seconds, 1, [&] { return encoders.encode(encoder) == NV_ENC_SUCCESS; });
  }
  const Decoder decoders;
  CUvideodecoder decoder = nullptr;
  if (decoders.open(&decoder) != CUDA_SUCCESS) return 1;
  return run_for(seconds, 1, [&] {
    CUVIDPICPARAMS picture{120, 68};
    return decoders.decode(decoder, &picture) == CUDA_SUCCESS;
  });
}

int open_sessions() {
  CUcontext context = nullptr;
  Encoder encoders;
  if (!open_context(&context) || !encoders.find_functions()) return 1;
  if (!wait_to_begin()) return 2;
  for (int round = 0; round < 2; ++round) {
    std::vector<void*> open;
    void* encoder = nullptr;
    NVENCSTATUS result = NV_ENC_SUCCESS;
    while (open.size() < 100 && result == NV_ENC_SUCCESS) {
      result = open.size() % 2 == 0 ? encoders.open(context, &encoder)
                                    : encoders.open_as_of_old(context, &encoder);
      if (result == NV_ENC_SUCCESS) open.push_back(encoder);
    }
    std::printf("%zu encoders, then %d\n", open.size(), result);
    for (void* const one : open)
      if (encoders.close(one) != NV_ENC_SUCCESS) return 3;
  }
  const Decoder decoders;
  std::vector<CUvideodecoder> open;
  CUvideodecoder decoder = nullptr;
  CUresult result = CUDA_SUCCESS;
  while (open.size() < 100 && (result = decoders.open(&decoder)) == CUDA_SUCCESS)
    open.push_back(decoder);
  std::printf("%zu decoders, then %d\n", open.size(), result);
  for (CUvideodecoder const one : open)
    if (decoders.destroy(one) != CUDA_SUCCESS) return 4;
  return 0;
}

}  // namespace regatta::hook_test
