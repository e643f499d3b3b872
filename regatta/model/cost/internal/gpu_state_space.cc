#include "regatta/model/cost/internal/gpu_state_space.h"

#include <algorithm>

namespace regatta::cost {
namespace {

constexpr double kStateBytes = 4;  // states stay in fp32

// The published kernels multiply tiles of one head and chunk and no faster than this: the mixer of
// Mamba-2 2.7B takes 4.03 ms forward and backward for 4096 tokens on an MI300X (ROCm/triton, issue
// 777, 2025), of which its two projections, at 500 TFLOPS, take half; passes a tenth of the rest.
constexpr FlopsPerSecond kScanRate{42e12};

// Sizes of the scan of one rank.
struct Scan {
  explicit Scan(const RankWork& work)
      : space(state_space_share(work)),
        tokens(work.tokens()),
        chunk(std::min(space.chunk, work.model.seq)),
        chunks(tokens / chunk),
        heads(space.heads),
        inner(static_cast<double>(space.inner())),
        states(chunks * inner * space.state) {}

  workload::StateSpace space;
  double tokens;
  double chunk;
  double chunks;  // of all sequences
  double heads;
  double inner;
  double states;  // elements of those of all chunks
};

}  // namespace

workload::StateSpace state_space_share(const RankWork& work) {
  workload::StateSpace share = work.model.state_space;
  share.heads = std::max(1, share.heads / work.tp);
  share.groups = std::max(1, share.groups / work.tp);
  return share;
}

BlockTime gpu_scan_time(const GpuEngines& engines, const RankWork& work) {
  const Scan scan(work);
  const MatrixEngine& engine = engines.scores;
  const double element = engine.bytes_per_element;
  const auto pass = [&](double bytes) { return Seconds{bytes / engine.memory.value}; };
  const auto product = [&](double batch, double m, double n, double k) {
    return std::max(matmul_time(engine, {.batch = batch, .m = m, .n = n, .k = k}),
                    Flops{2 * batch * m * n * k} / kScanRate);
  };
  const double n = scan.space.state;
  const double d = scan.space.head_dim;
  const double all = scan.chunks * scan.heads;
  // A group multiplies what reads its states with what writes them; a head these scores with its
  // inputs, and has products for the state that a chunk leaves and for that which it finds.
  const Seconds scores = product(scan.chunks * scan.space.groups, scan.chunk, scan.chunk, n);
  const Seconds inside = product(all, scan.chunk, d, scan.chunk);
  const Seconds left = product(all, d, n, scan.chunk);
  const Seconds read = product(all, scan.chunk, d, n);
  const double convolved = element * scan.tokens * static_cast<double>(scan.space.convolved());
  const double outputs = element * scan.tokens * scan.inner;
  BlockTime time;
  time.forward.attention = scores + inside + left + read;
  // Each of these products has two gradients; scores and states are made again.
  time.backward.attention = time.forward.attention * 2.0 + scores + left;
  // A state is written where a chunk ends, then handed from chunk to chunk: read and written.
  const Seconds handed = pass(3 * kStateBytes * scan.states);
  // Convolution and activation function; gate and norm: two read, one written.
  time.forward.passes = pass(2 * convolved) + handed + pass(3 * outputs);
  time.backward.passes = pass(3 * convolved) + handed * 2.0 + pass(6 * outputs);
  return time;
}

double state_space_bytes(const RankWork& work, double element) {
  const workload::StateSpace share = state_space_share(work);
  const auto inner = static_cast<double>(share.inner());
  const double chunk = std::min(share.chunk, work.model.seq);
  return element * (static_cast<double>(share.projected() + share.convolved()) + 2 * inner) +
         kStateBytes * inner * share.state / chunk;
}

}  // namespace regatta::cost
