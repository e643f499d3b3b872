// Encoders and decoders: how many a tenant has open, and how many pixels go through them. Each
// picture waits until the tenant's part of the engine allows it.
#include <atomic>
#include <map>

#include "regatta/base/core/mutex.h"
#include "regatta/gpu/sharing/internal/hook/exports.h"
#include "regatta/gpu/sharing/internal/hook/memory.h"

namespace regatta::sharing::hook {
namespace {

constexpr std::uint64_t kBlockPixels = 256;  // 16 x 16; sizes of decoded pictures are in blocks

struct Session {
  int device = 0;
  std::uint64_t pixels = 0;  // of a picture; 0: not known yet
};

// Sessions of encoders or of decoders, by the library's handles.
class Sessions {
 public:
  void add(void* handle, Session session) {
    const MutexLock lock(mutex_);
    sessions_[handle] = session;
  }
  std::optional<Session> find(void* handle) {
    const MutexLock lock(mutex_);
    const auto at = sessions_.find(handle);
    return at == sessions_.end() ? std::nullopt : std::optional(at->second);
  }
  std::optional<Session> take(void* handle) {
    const MutexLock lock(mutex_);
    const auto at = sessions_.find(handle);
    if (at == sessions_.end()) return std::nullopt;
    const Session session = at->second;
    sessions_.erase(at);
    return session;
  }

 private:
  Mutex mutex_;
  std::map<void*, Session> sessions_ REGATTA_GUARDED_BY(mutex_);
};

Sessions& decoders() {
  static auto* const only = new Sessions;  // other threads use it until the very end
  return *only;
}
Sessions& encoders() {
  static auto* const only = new Sessions;
  return *only;
}

// The encoder's own functions: the same in every list that it fills.
using OpenSession = NVENCSTATUS(void*, std::uint32_t, void**);
using OpenSessionEx = NVENCSTATUS(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS*, void**);
using Initialize = NVENCSTATUS(void*, NV_ENC_INITIALIZE_PARAMS*);
using Encode = NVENCSTATUS(void*, NV_ENC_PIC_PARAMS*);
using Destroy = NVENCSTATUS(void*);
std::atomic<OpenSession*> real_open = nullptr;
std::atomic<OpenSessionEx*> real_open_ex = nullptr;
std::atomic<Initialize*> real_initialize = nullptr;
std::atomic<Encode*> real_encode = nullptr;
std::atomic<Destroy*> real_destroy = nullptr;

// The device of a context that need not be current.
int device_of(CUcontext context) {
  CUdevice device = -1;
  CUcontext out = nullptr;
  if (context == nullptr || driver<DriverEntry::cuCtxPushCurrent_v2>()(context) != CUDA_SUCCESS)
    return -1;
  if (driver<DriverEntry::cuCtxGetDevice>()(&device) != CUDA_SUCCESS) device = -1;
  driver<DriverEntry::cuCtxPopCurrent_v2>()(&out);
  return device;
}

// Opens one by `open` if the tenant may have one more on the device behind `handle`.
template <typename Open>
NVENCSTATUS open_counted(void* handle, std::uint32_t kind, void** encoder, const Open& open) {
  const bool is_counted = encoder != nullptr && kind == NV_ENC_DEVICE_TYPE_CUDA;
  const int device = is_counted ? device_of(static_cast<CUcontext>(handle)) : -1;
  if (device < 0) return open();
  if (!open_session(device, REGATTA_ENCODE)) return NV_ENC_ERR_OUT_OF_MEMORY;
  const NVENCSTATUS result = open();
  if (result == NV_ENC_SUCCESS) {
    encoders().add(*encoder, {.device = device});
  } else {
    close_session(device, REGATTA_ENCODE);
  }
  return result;
}

NVENCSTATUS open_encoder(void* handle, std::uint32_t kind, void** encoder) {
  return open_counted(handle, kind, encoder,
                      [&] { return real_open.load()(handle, kind, encoder); });
}

NVENCSTATUS open_encoder_ex(NV_ENC_OPEN_ENCODE_SESSION_EX_PARAMS* wanted, void** encoder) {
  OpenSessionEx* const real = real_open_ex;
  if (wanted == nullptr) return real(wanted, encoder);
  return open_counted(wanted->device, wanted->deviceType, encoder,
                      [&] { return real(wanted, encoder); });
}

NVENCSTATUS initialize_encoder(void* encoder, NV_ENC_INITIALIZE_PARAMS* wanted) {
  const NVENCSTATUS result = real_initialize.load()(encoder, wanted);
  auto session = encoders().find(encoder);
  if (result == NV_ENC_SUCCESS && session) {
    session->pixels = std::uint64_t{wanted->encodeWidth} * wanted->encodeHeight;
    encoders().add(encoder, *session);
  }
  return result;
}

NVENCSTATUS encode_picture(void* encoder, NV_ENC_PIC_PARAMS* picture) {
  const auto session = encoders().find(encoder);
  const bool is_picture =
      picture != nullptr && (picture->encodePicFlags & NV_ENC_PIC_FLAG_EOS) == 0;
  if (session && is_picture) acquire_engine(session->device, REGATTA_ENCODE, session->pixels);
  return real_encode.load()(encoder, picture);
}

NVENCSTATUS destroy_encoder(void* encoder) {
  // Taken out first: as soon as it is gone, another one may get the same handle.
  const auto session = encoders().take(encoder);
  const NVENCSTATUS result = real_destroy.load()(encoder);
  if (session && result == NV_ENC_SUCCESS) {
    close_session(session->device, REGATTA_ENCODE);
  } else if (session) {
    encoders().add(encoder, *session);
  }
  return result;
}

// Puts ours in the place of one of the library's, which it remembers.
template <typename Function>
void replace(void*& place, std::atomic<Function*>& real, Function* ours) {
  if (place == nullptr || place == reinterpret_cast<void*>(ours)) return;
  real = reinterpret_cast<Function*>(place);
  place = reinterpret_cast<void*>(ours);
}

}  // namespace

NVENCSTATUS create_encoder_functions(DriverFunction<DriverEntry::NvEncodeAPICreateInstance> real,
                                     NV_ENCODE_API_FUNCTION_LIST* list) {
  const NVENCSTATUS result = real(list);
  if (result != NV_ENC_SUCCESS || list == nullptr) return result;
  replace(list->functions[kNvEncOpenEncodeSession], real_open, open_encoder);
  replace(list->functions[kNvEncOpenEncodeSessionEx], real_open_ex, open_encoder_ex);
  replace(list->functions[kNvEncInitializeEncoder], real_initialize, initialize_encoder);
  replace(list->functions[kNvEncEncodePicture], real_encode, encode_picture);
  replace(list->functions[kNvEncDestroyEncoder], real_destroy, destroy_encoder);
  return result;
}

CUresult create_decoder(DriverFunction<DriverEntry::cuvidCreateDecoder> real,
                        CUvideodecoder* decoder, CUVIDDECODECREATEINFO* wanted) {
  const auto place = current_device_context();
  if (!place || decoder == nullptr) return real(decoder, wanted);
  if (!open_session(place->device, REGATTA_DECODE)) return CUDA_ERROR_OUT_OF_MEMORY;
  const CUresult result = real(decoder, wanted);
  if (result == CUDA_SUCCESS) {
    decoders().add(*decoder, {.device = place->device});
  } else {
    close_session(place->device, REGATTA_DECODE);
  }
  return result;
}

CUresult destroy_decoder(DriverFunction<DriverEntry::cuvidDestroyDecoder> real,
                         CUvideodecoder decoder) {
  const auto session = decoders().take(decoder);
  const CUresult result = real(decoder);
  if (session && result == CUDA_SUCCESS) {
    close_session(session->device, REGATTA_DECODE);
  } else if (session) {
    decoders().add(decoder, *session);
  }
  return result;
}

CUresult decode_picture(DriverFunction<DriverEntry::cuvidDecodePicture> real,
                        CUvideodecoder decoder, CUVIDPICPARAMS* picture) {
  const auto session = decoders().find(decoder);
  if (session && picture != nullptr && picture->PicWidthInMbs > 0 &&
      picture->FrameHeightInMbs > 0) {
    acquire_engine(session->device, REGATTA_DECODE,
                   static_cast<std::uint64_t>(picture->PicWidthInMbs) *
                       static_cast<std::uint64_t>(picture->FrameHeightInMbs) * kBlockPixels);
  }
  return real(decoder, picture);
}

}  // namespace regatta::sharing::hook
