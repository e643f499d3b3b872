#include "regatta/network/heal/internal/spread.h"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"

namespace regatta::heal {
namespace {

constexpr std::uint32_t kNobody = ~0U;

bool contains(std::span<const std::uint32_t> hops, std::uint32_t hop) {
  return std::ranges::find(hops, hop) != hops.end();
}

long long total_of(std::span<const Part> parts) {
  return std::accumulate(parts.begin(), parts.end(), 0LL,
                         [](long long sum, const Part& part) { return sum + part.weight; });
}

// How many equal pieces a hop's range is cut into: one for each of the others, and where few hops
// make that cheap, so that a second loss divides evenly as well.
std::size_t pieces_of_a_hop(std::size_t hops) {
  if (hops <= 2) return 1;
  if (hops <= 8) return (hops - 1) * (hops - 2);
  return std::min<std::size_t>(hops - 1, kMaxWeight - 1);
}

// Hop of each of `count` equal pieces of the hash; kNobody where a boundary falls into a piece.
std::vector<std::uint32_t> holders(std::span<const Part> parts, std::size_t count) {
  std::vector<std::uint32_t> holder(count, kNobody);
  const long long total = total_of(parts);
  const auto pieces = static_cast<long long>(count);
  long long begin = 0;
  for (const Part& part : parts) {
    const long long end = begin + part.weight;
    for (long long piece = (begin * pieces + total - 1) / total;
         (piece + 1) * total <= end * pieces; ++piece)
      at(holder, piece) = part.hop;
    begin = end;
  }
  return holder;
}

// Takes from hops that have more than their even share what is not of their own range, where one
// that has come back has less.
void even_out(std::vector<std::uint32_t>& holder, std::span<const std::uint32_t> all,
              std::span<const std::uint32_t> left) {
  const std::size_t pieces = holder.size() / all.size();
  const std::size_t fair = (holder.size() + left.size() - 1) / left.size();
  std::map<std::uint32_t, std::size_t> load;
  for (const std::uint32_t hop : holder)
    ++load[hop];
  for (std::size_t piece = 0; piece < holder.size(); ++piece) {
    std::uint32_t& hop = holder[piece];
    const bool is_own = hop == kNobody || all[piece / pieces] == hop;
    if (is_own || load[hop] <= fair) continue;
    --load[hop];
    hop = kNobody;
  }
}

// How many of the pieces that nobody has each hop gets: always one for that with the least.
std::vector<std::size_t> gifts(const std::vector<std::uint32_t>& holder,
                               std::span<const std::uint32_t> left) {
  std::map<std::uint32_t, std::size_t> pieces;
  for (const std::uint32_t hop : holder)
    ++pieces[hop];
  std::vector<std::size_t> load;
  for (const std::uint32_t hop : left)
    load.push_back(pieces[hop]);
  std::vector<std::size_t> transfer(left.size(), 0);
  for (auto rest = std::ranges::count(holder, kNobody); rest > 0; --rest) {
    const auto least = static_cast<std::size_t>(std::ranges::min_element(load) - load.begin());
    ++load[least];
    ++transfer[least];
  }
  return transfer;
}

std::vector<Part> to_parts(const std::vector<std::uint32_t>& holder) {
  std::vector<Part> parts;
  for (const std::uint32_t hop : holder) {
    if (!parts.empty() && parts.back().hop == hop) {
      ++parts.back().weight;
    } else {
      parts.push_back({hop, 1});
    }
  }
  int divisor = 0;
  for (const Part& part : parts)
    divisor = std::gcd(divisor, part.weight);
  std::vector<Part> small;
  for (Part part : parts) {
    part.weight /= divisor;
    for (; part.weight > kMaxWeight; part.weight -= kMaxWeight)
      small.push_back({part.hop, kMaxWeight});
    small.push_back(part);
  }
  return small;
}

}  // namespace

std::vector<Part> even_parts(std::span<const std::uint32_t> hops) {
  std::vector<Part> parts;
  for (const std::uint32_t hop : hops)
    parts.push_back({hop, 1});
  return parts;
}

std::vector<Part> respread(std::span<const Part> installed, std::span<const std::uint32_t> all,
                           std::span<const std::uint32_t> left) {
  REGATTA_CHECK(!left.empty());
  if (left.size() == all.size()) return even_parts(all);
  const std::size_t pieces = pieces_of_a_hop(all.size());
  std::vector<std::uint32_t> holder = holders(installed, all.size() * pieces);
  for (std::size_t owner = 0; owner < all.size(); ++owner) {
    const auto range = std::span(holder).subspan(owner * pieces, pieces);
    if (contains(left, all[owner])) {
      std::ranges::fill(range, all[owner]);
      continue;
    }
    for (std::uint32_t& one : range)
      if (!contains(left, one)) one = kNobody;
  }
  const bool has_returned = std::ranges::any_of(left, [&](std::uint32_t hop) {
    return std::ranges::find(installed, hop, &Part::hop) == installed.end();
  });
  if (has_returned) even_out(holder, all, left);
  std::vector<std::size_t> transfer = gifts(holder, left);
  std::size_t taker = 0;
  for (std::uint32_t& one : holder) {
    if (one != kNobody) continue;
    while (transfer[taker] == 0)
      ++taker;
    one = left[taker];
    --transfer[taker];
  }
  return to_parts(holder);
}

double moved_share(std::span<const Part> before, std::span<const Part> after,
                   std::span<const std::uint32_t> healthy) {
  const auto total_before = static_cast<double>(total_of(before));
  const auto total_after = static_cast<double>(total_of(after));
  double moved = 0;
  double begin = 0;
  for (const Part& old : before) {
    const double end = begin + old.weight / total_before;
    double from = 0;
    for (const Part& now : after) {
      const double to = from + now.weight / total_after;
      if (now.hop != old.hop && contains(healthy, old.hop))
        moved += std::max(0.0, std::min(end, to) - std::max(begin, from));
      from = to;
    }
    begin = end;
  }
  return moved;
}

}  // namespace regatta::heal
