#include "regatta/model/collective/internal/double_tree.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/model/collective/internal/chunk_window.h"

namespace regatta::collective {
namespace {

constexpr int kNobody = -1;

struct Node {
  int parent = kNobody;
  std::array<int, 2> children = {kNobody, kNobody};

  bool is_root() const { return parent == kNobody; }
};

// The in-order tree over 0..count-1: the children of a number with the lowest set bit b are b/2
// below and above it; 0 is the root. Odd numbers are leaves.
Node node_at(int position, int count) {
  Node node;
  const int bit = position & -position;
  const auto above = std::bit_floor(static_cast<unsigned>(std::max(count - 1, 0)));
  if (position > 0) {
    const int up = (position - bit) | (2 * bit);
    node.parent = up < count ? up : position - bit;
    if (bit > 1) node.children[0] = position - bit / 2;
  }
  int step = position > 0 ? bit / 2 : static_cast<int>(above);
  while (step > 0 && position + step >= count)
    step /= 2;
  if (step > 0) node.children[1] = position + step;
  return node;
}

// Where `member` of `count` stands in the second tree: the leaves of the first are not leaves here.
int other_position(int member, int count) {
  return count % 2 == 0 ? count - 1 - member : (member - 1 + count) % count;
}
int other_member(int position, int count) {
  return count % 2 == 0 ? count - 1 - position : (position + 1) % count;
}

// `member` of `count` in tree 0 or 1, with members as neighbours.
Node member_node(int tree, int member, int count) {
  if (tree == 0) return node_at(member, count);
  Node node = node_at(other_position(member, count), count);
  const auto name = [&](int position) {
    return position == kNobody ? kNobody : other_member(position, count);
  };
  return {name(node.parent), {name(node.children[0]), name(node.children[1])}};
}

// The trees over all ranks but the root, which stands above both.
Node rooted_node(int tree, const GroupPosition& self, int root) {
  const int count = self.world_size - 1;
  const auto rank_of = [&](int member) { return (root + 1 + member) % self.world_size; };
  const int top = rank_of(tree == 0 ? 0 : other_member(0, count));
  if (self.rank == root) return {kNobody, {top, kNobody}};
  const Node node = member_node(tree, self.neighbour(-root - 1), count);
  const auto name = [&](int member) { return member == kNobody ? kNobody : rank_of(member); };
  return {node.is_root() ? root : rank_of(node.parent),
          {name(node.children[0]), name(node.children[1])}};
}

// A chunk of a half of the vector.
struct Chunk {
  std::uint32_t number = 0;
  std::size_t from = 0;  // bytes from the start of the vector
  std::size_t bytes = 0;
};

// One of the trees, as one rank sees it.
class Lane {
 public:
  Lane(CollectiveSchedule& schedule, int tree, const Node& node)
      : schedule_(schedule), tree_(tree), node_(node) {}

  // Adds up the chunk of `in` and those of the children in `sum`, which a leaf does not use, and
  // sends it to the parent. Gives the step that made the sum.
  StepIndex up(const Chunk& chunk, const std::byte* in, std::byte* sum) {
    StepIndex made = kNoStep;
    const std::byte* value = in;
    const int last = node_.children[1] == kNobody ? node_.children[0] : node_.children[1];
    for (std::size_t i = 0; i < node_.children.size(); ++i) {
      const int child = node_.children[i];
      if (child == kNobody) continue;
      made = receive({.kind = StepKind::kReceiveReduce,
                      .peer = child,
                      .tag = tag(chunk, Way::kUp),
                      .dst = sum + chunk.from,
                      .src = value + chunk.from,
                      .bytes = chunk.bytes,
                      .finishes = node_.is_root() && child == last},
                     made, from_children_[i]);
      value = sum;
    }
    if (!node_.is_root()) send(node_.parent, tag(chunk, Way::kUp), chunk, value, made);
    return made;
  }

  // Passes the chunk of `out` on to the children: what `made` made, at the root; elsewhere what
  // comes from the parent. It is made of what lay at its place, so it does not come before that was
  // sent.
  void down(const Chunk& chunk, std::byte* out, StepIndex made) {
    if (!node_.is_root())
      made = receive({.kind = StepKind::kReceive,
                      .peer = node_.parent,
                      .tag = tag(chunk, Way::kDown),
                      .dst = out + chunk.from,
                      .bytes = chunk.bytes},
                     kNoStep, from_parent_);
    for (const int child : node_.children)
      if (child != kNobody) send(child, tag(chunk, Way::kDown), chunk, out, made);
  }

 private:
  // A neighbour can be one in both trees, and a child in one and the parent in the other.
  enum class Way : std::uint32_t { kUp, kDown };
  std::uint32_t tag(const Chunk& chunk, Way way) const {
    return chunk.number << 2 | static_cast<std::uint32_t>(tree_) << 1 |
           static_cast<std::uint32_t>(way);
  }

  StepIndex receive(const Step& step, StepIndex after, std::vector<StepIndex>& before) {
    const StepIndex index = schedule_.add(step);
    if (after != kNoStep) schedule_.wait_for(index, after);
    if (before.size() >= kReceivesAhead)
      schedule_.wait_for(index, before[before.size() - kReceivesAhead]);
    before.push_back(index);
    return index;
  }

  void send(int peer, std::uint32_t tag, const Chunk& chunk, const std::byte* from,
            StepIndex after) {
    const StepIndex index = schedule_.add({.kind = StepKind::kSend,
                                           .peer = peer,
                                           .tag = tag,
                                           .src = from + chunk.from,
                                           .bytes = chunk.bytes});
    if (after != kNoStep) schedule_.wait_for(index, after);
  }

  CollectiveSchedule& schedule_;
  int tree_;
  Node node_;
  std::array<std::vector<StepIndex>, 2> from_children_;
  std::vector<StepIndex> from_parent_;
};

// Calls work(tree, chunk) for the chunks of both halves in turns.
template <typename Work>
void for_chunks(const Buffers& buffers, const TreeOptions& options, const Work& work) {
  const std::size_t in_chunk =
      std::max<std::size_t>(1, options.chunk_bytes / buffers.element_bytes);
  const std::size_t middle = (buffers.count + 1) / 2;
  const std::array<std::size_t, 3> bounds = {0, middle, buffers.count};
  for (std::size_t chunk = 0; chunk * in_chunk < middle; ++chunk)
    for (std::size_t tree = 0; tree < 2; ++tree) {
      const std::size_t first = bounds[tree] + chunk * in_chunk;
      if (first >= bounds[tree + 1]) continue;
      const std::size_t count = std::min(in_chunk, bounds[tree + 1] - first);
      work(tree, Chunk{static_cast<std::uint32_t>(chunk), first * buffers.element_bytes,
                       count * buffers.element_bytes});
    }
}

}  // namespace

void double_tree_all_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                            const Buffers& buffers, const TreeOptions& options) {
  std::array<Lane, 2> lanes = {Lane(schedule, 0, member_node(0, self.rank, self.world_size)),
                               Lane(schedule, 1, member_node(1, self.rank, self.world_size))};
  for_chunks(buffers, options, [&](std::size_t tree, const Chunk& chunk) {
    const StepIndex made = lanes[tree].up(chunk, buffers.in, buffers.out);
    lanes[tree].down(chunk, buffers.out, made);
  });
}

void double_tree_broadcast(CollectiveSchedule& schedule, const GroupPosition& self,
                           const Buffers& buffers, int root, const TreeOptions& options) {
  std::array<Lane, 2> lanes = {Lane(schedule, 0, rooted_node(0, self, root)),
                               Lane(schedule, 1, rooted_node(1, self, root))};
  for_chunks(buffers, options, [&](std::size_t tree, const Chunk& chunk) {
    lanes[tree].down(chunk, buffers.out, kNoStep);
  });
}

void double_tree_reduce(CollectiveSchedule& schedule, const GroupPosition& self,
                        const Buffers& buffers, int root, const TreeOptions& options) {
  std::array<Lane, 2> lanes = {Lane(schedule, 0, rooted_node(0, self, root)),
                               Lane(schedule, 1, rooted_node(1, self, root))};
  std::byte* const sum = self.rank == root ? buffers.out : schedule.scratch(buffers.bytes());
  for_chunks(buffers, options,
             [&](std::size_t tree, const Chunk& chunk) { lanes[tree].up(chunk, buffers.in, sum); });
}

}  // namespace regatta::collective
