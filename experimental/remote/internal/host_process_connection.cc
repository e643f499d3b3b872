// The host process's side of one connection of a remote program.
#include <algorithm>
#include <cstring>

#include <unistd.h>

#include "experimental/remote/internal/host_process.h"

namespace regatta::remote {
namespace {

using CopyInNow = CUresult(CUdeviceptr, const void*, std::size_t);
using CopyInStream = CUresult(CUdeviceptr, const void*, std::size_t, CUstream);
using CopyOutNow = CUresult(void*, CUdeviceptr, std::size_t);
using CopyOutStream = CUresult(void*, CUdeviceptr, std::size_t, CUstream);
using Wait = CUresult(CUstream);
using IsCapturing = CUresult(CUstream, int*);
using CallHost = CUresult(CUstream, CUhostFn, void*);

class HostServer {
 public:
  HostServer(HostProcess& host, ByteChannel& channel, std::uint64_t id)
      : host_(host), channel_(channel), id_(id), inbox_(channel) {}

  void serve() {
    Frame frame;
    while (inbox_.read(&frame, sizeof frame) && serve_message(frame))
      host_.note_progress(id_, ++count_);
  }

 private:
  bool read_message(std::uint32_t bytes) {
    constexpr std::size_t kStep = 1 << 20;  // the claimed bytes have not arrived yet
    message_.clear();
    while (message_.size() < bytes) {
      const std::size_t before = message_.size();
      message_.resize(std::min<std::size_t>(bytes, before + kStep));
      if (!inbox_.read(message_.data() + before, message_.size() - before)) return false;
    }
    return true;
  }

  bool send_answer(CUresult status) {
    const CallReplyHeader head{static_cast<std::uint32_t>(answer_.size()), status};
    return channel_.send({reinterpret_cast<const char*>(&head), sizeof head},
                         {reinterpret_cast<const char*>(answer_.data()), answer_.size()});
  }

  // The first error of calls without an answer is returned once, by a call with one. A call that
  // would make something is not made then, because the program would not learn of it.
  bool serve_message(const Frame& frame) {
    if (frame.bytes > kLongestMessage || frame.wants_answer > 1 || !read_message(frame.bytes))
      return false;
    if (frame.number == static_cast<std::uint16_t>(ControlMessage::kCopyOut))
      return copy_out(frame);
    answer_.clear();
    const bool owes = frame.wants_answer == 1 && debt_ != CUDA_SUCCESS;
    const bool is_made = !owes || !has_result(frame.number);
    CUresult status = is_made ? run(frame) : CUDA_SUCCESS;
    if (status == kBroken) return false;
    if (frame.wants_answer == 0) {
      if (debt_ == CUDA_SUCCESS) debt_ = status;
      return true;
    }
    if (status == CUDA_SUCCESS) status = std::exchange(debt_, CUDA_SUCCESS);
    if (status != CUDA_SUCCESS) answer_.clear();
    return send_answer(status);
  }

  CUresult run(const Frame& frame) {
    MessageReader reader(message_);
    switch (static_cast<ControlMessage>(frame.number)) {
      case ControlMessage::kFence: {
        Fence fence;
        if (!reader.get(fence) || !reader.is_at_end() || fence.connection == id_) return kBroken;
        return host_.wait_for(fence) ? CUDA_SUCCESS : kBroken;
      }
      case ControlMessage::kLayout:
        return answer_layout(reader);
      case ControlMessage::kCopyIn:
        return copy_in(reader);
      default:
        return run_call(host_, frame.number, message_, answer_);
    }
  }

  CUresult answer_layout(MessageReader reader) {
    CUfunction function = nullptr;
    ParameterLayout layout;
    if (!reader.get(function) || !reader.is_at_end()) return kBroken;
    const CUresult status = host_.layout(function, layout);
    MessageWriter writer(answer_);
    for (const KernelParameter& one : layout)
      writer.put(one);
    return status;
  }

  CUresult check_stream(std::uint64_t number, CopyMode route, CUstream& stream) {
    stream = reinterpret_cast<CUstream>(number);  // NOLINT(performance-no-int-to-ptr): a handle
    if (const CUresult known = host_.handles().check(stream); known != CUDA_SUCCESS) return known;
    if (route == CopyMode::kNow || route == CopyMode::kNowOwnStream) return CUDA_SUCCESS;
    // A graph would access the program's memory at each launch.
    auto* const ask = host_.find<IsCapturing>(
        route == CopyMode::kInStream ? "cuStreamIsCapturing" : "cuStreamIsCapturing_ptsz");
    int status = 0;
    if (ask != nullptr && ask(stream, &status) == CUDA_SUCCESS && status != 0)
      return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return CUDA_SUCCESS;
  }

  CUresult copy_in(MessageReader reader) {
    CopyIn copy;
    std::span<const std::byte> bytes;
    if (!reader.get(copy) || copy.route > CopyMode::kInStreamOrOwn) return kBroken;
    const std::size_t size = message_.size() - sizeof copy;
    if (size > kPiece || !reader.get_bytes(size, bytes)) return kBroken;
    CUstream stream = nullptr;
    if (const CUresult good = check_stream(copy.stream, copy.route, stream); good != CUDA_SUCCESS)
      return good;
    if (copy.route == CopyMode::kNow || copy.route == CopyMode::kNowOwnStream) {
      auto* const function = host_.find<CopyInNow>(
          copy.route == CopyMode::kNow ? "cuMemcpyHtoD_v2" : "cuMemcpyHtoD_v2_ptds");
      return function == nullptr ? kNotSupported : function(copy.to, bytes.data(), bytes.size());
    }
    return copy_in_stream(copy, bytes, stream);
  }

  // The bytes stay until the stream has copied them.
  CUresult copy_in_stream(const CopyIn& copy, std::span<const std::byte> bytes, CUstream stream) {
    const bool is_own = copy.route == CopyMode::kInStreamOrOwn;
    auto* const function =
        host_.find<CopyInStream>(is_own ? "cuMemcpyHtoDAsync_v2_ptsz" : "cuMemcpyHtoDAsync_v2");
    auto* const call = host_.find<CallHost>(is_own ? "cuLaunchHostFunc_ptsz" : "cuLaunchHostFunc");
    auto* const wait =
        host_.find<Wait>(is_own ? "cuStreamSynchronize_ptsz" : "cuStreamSynchronize");
    if (function == nullptr || wait == nullptr) return kNotSupported;
    struct Piece {
      HostProcess* host;
      std::byte* bytes;
    };
    auto* const piece = new Piece{&host_, host_.acquire_piece()};
    const auto give_back = [](void* data) {
      auto* const done = static_cast<Piece*>(data);
      done->host->release_piece(done->bytes);
      delete done;
    };
    if (!bytes.empty()) std::memcpy(piece->bytes, bytes.data(), bytes.size());
    const CUresult status = function(copy.to, piece->bytes, bytes.size(), stream);
    if (status == CUDA_SUCCESS && call != nullptr && call(stream, give_back, piece) == CUDA_SUCCESS)
      return status;
    if (status == CUDA_SUCCESS) static_cast<void>(wait(stream));
    give_back(piece);
    return status;
  }

  bool copy_out(const Frame& frame) {
    CopyOut copy;
    MessageReader reader(message_);
    if (frame.wants_answer != 1 || !reader.get(copy) || !reader.is_at_end() ||
        copy.route > CopyMode::kInStreamOrOwn)
      return false;
    CUstream stream = nullptr;
    CUresult status = std::exchange(debt_, CUDA_SUCCESS);
    if (status == CUDA_SUCCESS) status = check_stream(copy.stream, copy.route, stream);
    do {
      const std::size_t piece = std::min<std::size_t>(copy.bytes, kPiece);
      answer_.resize(status == CUDA_SUCCESS ? piece : 0);
      if (status == CUDA_SUCCESS) status = copy_piece(copy, stream);
      if (status != CUDA_SUCCESS) answer_.clear();
      if (!send_answer(status)) return false;
      copy.from += piece;
      copy.bytes -= piece;
    } while (copy.bytes > 0 && status == CUDA_SUCCESS);
    return true;
  }

  // Into the answer.
  CUresult copy_piece(const CopyOut& copy, CUstream stream) {
    if (copy.route == CopyMode::kNow || copy.route == CopyMode::kNowOwnStream) {
      auto* const function = host_.find<CopyOutNow>(
          copy.route == CopyMode::kNow ? "cuMemcpyDtoH_v2" : "cuMemcpyDtoH_v2_ptds");
      if (function == nullptr) return kNotSupported;
      return function(answer_.data(), copy.from, answer_.size());
    }
    const bool is_own = copy.route == CopyMode::kInStreamOrOwn;
    auto* const function =
        host_.find<CopyOutStream>(is_own ? "cuMemcpyDtoHAsync_v2_ptsz" : "cuMemcpyDtoHAsync_v2");
    auto* const wait =
        host_.find<Wait>(is_own ? "cuStreamSynchronize_ptsz" : "cuStreamSynchronize");
    if (function == nullptr || wait == nullptr) return kNotSupported;
    const CUresult status = function(answer_.data(), copy.from, answer_.size(), stream);
    const CUresult waited = wait(stream);
    return status == CUDA_SUCCESS ? waited : status;
  }

  HostProcess& host_;
  ByteChannel& channel_;
  const std::uint64_t id_;
  BufferedReader inbox_;
  Buffer message_;
  Buffer answer_;
  CUresult debt_ = CUDA_SUCCESS;  // the first error of calls without an answer
  std::uint64_t count_ = 0;
};

}  // namespace

void serve_connection(HostProcess& host, ByteChannel& channel, std::uint64_t id) {
  HostServer(host, channel, id).serve();
}

}  // namespace regatta::remote
